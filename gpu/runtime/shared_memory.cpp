#include "gpu/runtime/shared_memory.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <span>

#include "core/base/error.hpp"
#include "core/base/hex.hpp"
#include "gpu/runtime/cuda_error.hpp"
#include "gpu/runtime/ipc_memory.hpp"

namespace attest {
namespace {

constexpr std::size_t alignment = 256;  // cudaMalloc's: copies lie as the originals do

std::size_t rounded_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

void SharedMemory::find_buffers(const std::vector<const void*>& addresses) {
  buffers_.clear();
  needed_ = 0;
  for (const void* address : addresses) {
    const GpuAllocation allocation = allocation_of(address);
    Buffer buffer{.original = allocation.first, .bytes = allocation.bytes};
    const bool is_known = std::ranges::any_of(
        buffers_, [&](const Buffer& known) { return known.original == buffer.original; });
    if (is_known) continue;
    buffer.at = needed_;
    needed_ += rounded_up(buffer.bytes, alignment);
    buffers_.push_back(buffer);
  }
}

void SharedMemory::make_room() {
  memory_ = {};
  memory_ = DeviceBuffer<std::byte>(rounded_up(needed_, ipc_page_bytes));
}

std::string SharedMemory::handle() const {
  cudaIpcMemHandle_t handle{};
  ATTEST_CUDA_CHECK(cudaIpcGetMemHandle(&handle, memory_.data()));
  return to_hex(std::as_bytes(std::span(handle.reserved)));
}

std::string SharedMemory::exported() const {
  return attest::exported(memory_.data());
}

void SharedMemory::copy_in(void* stream) const {
  const auto in = static_cast<cudaStream_t>(stream);
  for (const Buffer& b : buffers_) {
    ATTEST_CUDA_CHECK(
        cudaMemcpyAsync(memory_.data() + b.at, b.original, b.bytes, cudaMemcpyDeviceToDevice, in));
  }
  ATTEST_CUDA_CHECK(cudaStreamSynchronize(in));
}

void SharedMemory::copy_back(void* stream) const {
  const auto in = static_cast<cudaStream_t>(stream);
  for (const Buffer& b : buffers_) {
    ATTEST_CUDA_CHECK(
        cudaMemcpyAsync(b.original, memory_.data() + b.at, b.bytes, cudaMemcpyDeviceToDevice, in));
  }
  ATTEST_CUDA_CHECK(cudaStreamSynchronize(in));
}

const SharedMemory::Buffer& SharedMemory::buffer_of(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto found = std::ranges::find_if(
      buffers_, [&](const Buffer& b) { return b.original <= byte && byte < b.original + b.bytes; });
  if (found == buffers_.end()) throw MachineError("a tensor lies in no buffer of its launch");
  return *found;
}

std::size_t SharedMemory::place_of(const void* address) const {
  const Buffer& b = buffer_of(address);
  return b.at + static_cast<std::size_t>(static_cast<const std::byte*>(address) - b.original);
}

std::vector<const std::byte*> SharedMemory::originals() const {
  std::vector<const std::byte*> originals;
  for (const Buffer& b : buffers_) originals.push_back(b.original);
  return originals;
}

}  // namespace attest
