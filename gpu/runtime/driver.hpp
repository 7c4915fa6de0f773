#pragma once

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "gpu/runtime/cuda_error.hpp"

namespace attest {

/// A function of the CUDA driver, found at run time, so that nothing links to it and the program
/// starts without a driver. `version`: of CUDA, the one whose interface `Function` is. Throws
/// MachineError where the driver has none.
template <typename Function>
[[nodiscard]] Function driver_function(const char* name, unsigned version) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  ATTEST_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess || entry == nullptr) {
    throw MachineError(fmt::format(
        "the CUDA driver has no {}; needed: a driver for CUDA {} or later", name, version / 1000));
  }
  return reinterpret_cast<Function>(entry);
}

/// Throws MachineError with the call's name where it failed. Numbers of the driver's errors are
/// those of the runtime, which knows their names.
inline void check_driver(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const auto code = static_cast<cudaError_t>(result);
  throw MachineError(
      fmt::format("{} failed: {} ({})", call, cudaGetErrorName(code), cudaGetErrorString(code)));
}

}  // namespace attest
