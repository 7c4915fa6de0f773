#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "core/run/out_of_device_memory.hpp"
#include "gpu/runtime/cuda_error.hpp"

namespace attest {

/// Owns an array of T in GPU memory, aligned to 256 bytes, values undefined. Empty: data() is
/// nullptr. Moved from: empty. A failed allocation throws MachineError with the size.
template <typename T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "copied to the GPU byte by byte");

 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    if (count == 0) return;
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw_no_memory();
    void* data = nullptr;
    const cudaError_t code = cudaMalloc(&data, count * sizeof(T));
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw_no_memory();
    }
    ATTEST_CUDA_CHECK(code);
    data_ = static_cast<T*>(data);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_) log_cuda_failure(cudaFree(data_), "cudaFree");
  }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }

  /// Copies values of the host here, and waits until that is done. Sizes must match.
  void copy_from(std::span<const T> host) {
    require_size(host.size());
    if (count_ == 0) return;
    ATTEST_CUDA_CHECK(cudaMemcpy(data_, host.data(), host.size_bytes(), cudaMemcpyHostToDevice));
    // Of at most 64 KiB cudaMemcpy only takes a copy on the host; streams that do not wait for the
    // default stream would run ahead of its arrival.
    ATTEST_CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  }
  void copy_to(std::span<T> host) const {
    require_size(host.size());
    if (count_ > 0)
      ATTEST_CUDA_CHECK(cudaMemcpy(host.data(), data_, host.size_bytes(), cudaMemcpyDeviceToHost));
  }

 private:
  [[noreturn]] void throw_no_memory() const {
    throw OutOfDeviceMemory(
        fmt::format("the GPU has no room for {} elements of {} bytes", count_, sizeof(T)));
  }
  void require_size(std::size_t count) const {
    if (count != count_) {
      throw InvalidInput(fmt::format("copy of {} elements; the GPU buffer has {}", count, count_));
    }
  }

  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace attest
