#include "gpu/peers/shared_memory.hpp"

#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "gpu/runtime/cuda_error.hpp"

namespace attest {
namespace {

constexpr std::size_t alignment = 256;              // cudaMalloc's: copies lie as the originals do
constexpr std::size_t page = std::size_t{2} << 20;  // smaller memory shares its page with others

std::size_t rounded_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

/// cuMemGetAddressRange, from the driver at run time, so that nothing links to it.
PFN_cuMemGetAddressRange_v3020 address_range() {
  static const PFN_cuMemGetAddressRange_v3020 function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    ATTEST_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &entry, 12000,
                                                       cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess || entry == nullptr) {
      throw MachineError("the CUDA driver has no cuMemGetAddressRange");
    }
    return reinterpret_cast<PFN_cuMemGetAddressRange_v3020>(entry);
  }();
  return function;
}

SharedMemory::Buffer allocation_of(const void* address) {
  CUdeviceptr first = 0;
  std::size_t bytes = 0;
  const CUresult code = address_range()(&first, &bytes, reinterpret_cast<CUdeviceptr>(address));
  if (code != CUDA_SUCCESS) {
    throw MachineError(fmt::format("cuMemGetAddressRange of a tensor failed with error {}",
                                   static_cast<int>(code)));
  }
  return {reinterpret_cast<std::byte*>(first), bytes};
}

}  // namespace

void SharedMemory::find_buffers(const std::vector<const void*>& addresses) {
  buffers_.clear();
  needed_ = 0;
  for (const void* address : addresses) {
    Buffer buffer = allocation_of(address);
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
  memory_ = DeviceBuffer<std::byte>(rounded_up(needed_, page));
}

std::string SharedMemory::handle() const {
  cudaIpcMemHandle_t handle{};
  ATTEST_CUDA_CHECK(cudaIpcGetMemHandle(&handle, memory_.data()));
  std::string text;
  for (const char byte : handle.reserved) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
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
