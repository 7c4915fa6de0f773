#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

#include "core/run/device.hpp"
#include "gpu/runtime/device_buffer.hpp"
#include "gpu/runtime/device_info.hpp"
#include "gpu/runtime/stream.hpp"

namespace attest {

class HardwareCounters;

/// One GPU and one stream, in which everything happens in order. For the host thread that made it.
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal = 0);
  ~CudaDevice() override;

  [[nodiscard]] std::byte* upload(const BufferImage& image) override;
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  [[nodiscard]] std::byte* upload_values(std::span<const std::byte> values) override;
  /// Copies `pattern` once and then what is there already: the host's link carries it alone.
  void fill(std::byte* to, std::size_t bytes, std::span<const std::byte> pattern) override;
  /// Waits for launched work first; `from` may point into a buffer. Throws CudaError.
  void download(const std::byte* from, std::span<std::byte> to) override;
  void release(std::byte* buffer) noexcept override;
  /// Shared memory of all multiprocessors that are not busy with another stream becomes NaN.
  void poison_scratch() override;
  void synchronize() override { stream_.synchronize(); }
  [[nodiscard]] double time_ms(const std::function<void()>& work) override;
  /// Milliseconds of the work as a CUDA graph. `work` must not wait for the device.
  [[nodiscard]] double replay_ms(const std::function<void()>& work) override;
  [[nodiscard]] bool records() const override { return true; }
  [[nodiscard]] std::unique_ptr<Recording> record(const std::function<void()>& work) override;
  /// State of the GPU from NVML; nothing where it is missing.
  [[nodiscard]] std::optional<DeviceState> state() override;
  [[nodiscard]] std::map<std::string, double> throttled_ms() override;
  /// Twice the L2 of nobody's data is read in the stream.
  void flush_cache() override;
  /// Each pass starts with a flushed cache.
  [[nodiscard]] std::vector<Measurement> count(std::span<const std::string> counters,
                                               const std::function<void()>& work) override;
  [[nodiscard]] void* native_stream() const override { return stream_.get(); }
  [[nodiscard]] std::string description() const override { return to_string(info_); }

  /// Version of the device's memory. While it stays the same, buffers hold what they held, but for
  /// what kernels wrote: it changes when one is made, filled or given back, and no two devices of a
  /// process ever have the same.
  [[nodiscard]] std::uint64_t memory_version() const { return memory_version_; }
  [[nodiscard]] const Stream& stream() const { return stream_; }
  [[nodiscard]] const DeviceInfo& info() const { return info_; }
  [[nodiscard]] int ordinal() const { return ordinal_; }

 private:
  int ordinal_;
  DeviceInfo info_;
  std::uint64_t memory_version_;
  Stream stream_;
  std::unordered_map<std::byte*, DeviceBuffer<std::byte>> buffers_;
  DeviceBuffer<std::byte> flush_;               ///< empty until the first flush
  std::unique_ptr<HardwareCounters> counters_;  ///< null until the first count
};

}  // namespace attest
