#include "gpu/runtime/ipc_memory.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/hex.hpp"
#include "gpu/runtime/cuda_error.hpp"
#include "gpu/runtime/driver.hpp"

namespace attest {

GpuAllocation allocation_of(const void* address) {
  static const auto range_of =
      driver_function<PFN_cuMemGetAddressRange_v3020>("cuMemGetAddressRange", 12000);
  CUdeviceptr first = 0;
  std::size_t bytes = 0;
  check_driver(range_of(&first, &bytes, reinterpret_cast<CUdeviceptr>(address)),
               "cuMemGetAddressRange");
  return {reinterpret_cast<std::byte*>(first), bytes};
}

std::string exported(const void* address) {
  const GpuAllocation allocation = allocation_of(address);
  cudaIpcMemHandle_t handle{};
  ATTEST_CUDA_CHECK(cudaIpcGetMemHandle(&handle, allocation.first));
  return fmt::format("{}+{}", to_hex(std::as_bytes(std::span(handle.reserved))),
                     static_cast<const std::byte*>(address) - allocation.first);
}

OpenedMemory::OpenedMemory(std::string_view text) {
  const std::size_t plus = text.find('+');
  const auto bytes = from_hex(text.substr(0, plus));
  cudaIpcMemHandle_t handle{};
  if (plus == std::string_view::npos || !bytes || bytes->size() != sizeof(handle.reserved)) {
    throw MachineError(fmt::format("'{}' is no memory of another process", text));
  }
  std::memcpy(handle.reserved, bytes->data(), bytes->size());
  offset_ = std::stoull(std::string(text.substr(plus + 1)));
  void* first = nullptr;
  ATTEST_CUDA_CHECK(cudaIpcOpenMemHandle(&first, handle, cudaIpcMemLazyEnablePeerAccess));
  first_ = static_cast<std::byte*>(first);
}

OpenedMemory::OpenedMemory(OpenedMemory&& other) noexcept
    : first_(std::exchange(other.first_, nullptr)), offset_(other.offset_) {}

OpenedMemory::~OpenedMemory() {
  if (first_ != nullptr) log_cuda_failure(cudaIpcCloseMemHandle(first_), "cudaIpcCloseMemHandle");
}

}  // namespace attest
