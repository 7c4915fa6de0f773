#include "gpu/runtime/cuda_device.hpp"

#include <algorithm>
#include <atomic>
#include <span>

#include "core/records/hardware_counters.hpp"
#include "core/run/registry.hpp"
#include "gpu/runtime/graph.hpp"
#include "gpu/runtime/hardware_counters.hpp"
#include "gpu/runtime/nvml.hpp"
#include "gpu/runtime/scrub.hpp"

namespace attest {
namespace {

DeviceInfo select_device(int ordinal) {
  ATTEST_CUDA_CHECK(cudaSetDevice(ordinal));
  return device_info(ordinal);
}

std::uint64_t next_memory_version() {
  static std::atomic<std::uint64_t> versions{0};
  return ++versions;
}

class RecordedGraph final : public Recording {
 public:
  RecordedGraph(const Stream& stream, const std::function<void()>& work)
      : stream_(stream), graph_(stream, work) {}
  void replay() override { graph_.replay(stream_); }

 private:
  const Stream& stream_;
  Graph graph_;
};

const DeviceRegistration registration{
    {.executor = Executor::gpu, .unavailable = why_no_gpu, .make = [] {
       return std::unique_ptr<Device>(std::make_unique<CudaDevice>());
     }}};

}  // namespace

CudaDevice::CudaDevice(int ordinal)
    : ordinal_(ordinal), info_(select_device(ordinal)), memory_version_(next_memory_version()) {}

CudaDevice::~CudaDevice() = default;

std::byte* CudaDevice::upload(const BufferImage& image) {
  std::byte* const buffer = allocate(image.size_bytes());
  for (const BufferImage::Piece& piece : image.pieces) {
    ATTEST_CUDA_CHECK(cudaMemcpyAsync(buffer + piece.begin, piece.bytes.data(), piece.bytes.size(),
                                      cudaMemcpyHostToDevice, stream_.get()));
  }
  stream_.synchronize();
  return buffer;
}

std::byte* CudaDevice::allocate(std::size_t bytes) {
  // An empty buffer still needs an address of its own, by which it is released.
  DeviceBuffer<std::byte> buffer{std::max<std::size_t>(bytes, 1)};
  memory_version_ = next_memory_version();
  std::byte* const address = buffer.data();
  buffers_.emplace(address, std::move(buffer));
  return address;
}

std::byte* CudaDevice::upload_values(std::span<const std::byte> values) {
  std::byte* const address = allocate(values.size());
  ATTEST_CUDA_CHECK(cudaMemcpyAsync(address, values.data(), values.size(), cudaMemcpyHostToDevice,
                                    stream_.get()));
  stream_.synchronize();
  return address;
}

void CudaDevice::fill(std::byte* to, std::size_t bytes, std::span<const std::byte> pattern) {
  memory_version_ = next_memory_version();
  std::size_t done = std::min(pattern.size(), bytes);
  ATTEST_CUDA_CHECK(
      cudaMemcpyAsync(to, pattern.data(), done, cudaMemcpyHostToDevice, stream_.get()));
  // Whole patterns are there at every doubling, so the copies continue them.
  for (; done < bytes; done = std::min(2 * done, bytes)) {
    ATTEST_CUDA_CHECK(cudaMemcpyAsync(to + done, to, std::min(done, bytes - done),
                                      cudaMemcpyDeviceToDevice, stream_.get()));
  }
  stream_.synchronize();
}

void CudaDevice::download(const std::byte* from, std::span<std::byte> to) {
  ATTEST_CUDA_CHECK(
      cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream_.get()));
  stream_.synchronize();
}

void CudaDevice::release(std::byte* buffer) noexcept {
  buffers_.erase(buffer);
  memory_version_ = next_memory_version();
}

void CudaDevice::poison_scratch() {
  ATTEST_CUDA_CHECK(
      launch_poison(info_.multiprocessors, info_.shared_per_block_optin_bytes, stream_.get()));
}

double CudaDevice::time_ms(const std::function<void()>& work) {
  Event start, stop;
  start.record(stream_);
  work();
  stop.record(stream_);
  stop.synchronize();
  return stop.ms_since(start);
}

double CudaDevice::replay_ms(const std::function<void()>& work) {
  const Graph graph(stream_, work);
  return time_ms([&] { graph.replay(stream_); });
}

std::unique_ptr<Recording> CudaDevice::record(const std::function<void()>& work) {
  return std::make_unique<RecordedGraph>(stream_, work);
}

std::optional<DeviceState> CudaDevice::state() {
  return nvml_state(info_.pci_bus_id);
}

std::map<std::string, double> CudaDevice::throttled_ms() {
  return nvml_throttled_ms(info_.pci_bus_id);
}

void CudaDevice::flush_cache() {
  if (flush_.size() == 0) {
    flush_ = DeviceBuffer<std::byte>(static_cast<std::size_t>(2 * info_.l2_bytes));
  }
  ATTEST_CUDA_CHECK(
      launch_read(flush_.data(), flush_.size(), info_.multiprocessors, stream_.get()));
}

std::vector<Measurement> CudaDevice::count(std::span<const std::string> counters,
                                           const std::function<void()>& work) {
  (void)hardware_counters_of(counters);  // bad input is bad input on every machine
  if (counters_ == nullptr) counters_ = std::make_unique<HardwareCounters>(ordinal_);
  const auto before = [this] {
    flush_cache();
    synchronize();
  };
  return counters_->count(counters, before, [&] {
    work();
    synchronize();
  });
}

}  // namespace attest
