#include "gpu/runtime/cuda_device.hpp"

#include <algorithm>
#include <span>

#include "core/registry.hpp"
#include "gpu/runtime/poison.hpp"

namespace attest {
namespace {

DeviceInfo select_device(int ordinal) {
  ATTEST_CUDA_CHECK(cudaSetDevice(ordinal));
  return device_info(ordinal);
}

const DeviceRegistration registration{
    {.executor = Executor::gpu, .unavailable = why_no_gpu, .make = [] {
       return std::unique_ptr<Device>(std::make_unique<CudaDevice>());
     }}};

}  // namespace

CudaDevice::CudaDevice(int ordinal) : info_(select_device(ordinal)) {}

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

void CudaDevice::download(const std::byte* from, std::span<std::byte> to) {
  ATTEST_CUDA_CHECK(
      cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream_.get()));
  stream_.synchronize();
}

void CudaDevice::release(std::byte* buffer) noexcept {
  buffers_.erase(buffer);
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

}  // namespace attest
