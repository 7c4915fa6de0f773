#include "gpu/runtime/cuda_error.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

namespace attest {
namespace {

// Reports name a file of the repository, not of the machine that built it.
std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

CudaError::CudaError(cudaError_t code, const char* call, const char* file, int line)
    : MachineError(fmt::format("{} failed: {} ({}), {}:{}", call, cudaGetErrorName(code),
                               cudaGetErrorString(code), file_name(file), line)),
      code_(code) {}

bool CudaError::is_sticky() const {
  // Errors of a launch's arguments leave the context usable; these, raised while a kernel ran, do
  // not [CUDA runtime API, cudaError_t: "the only way to continue is to terminate the process"].
  switch (code_) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return true;
    default:
      return false;
  }
}

void check_cuda(cudaError_t code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears an error that is not sticky, so that the next check does not see it
                       // again
  throw CudaError(code, call, file, line);
}

void log_cuda_failure(cudaError_t code, const char* call) noexcept {
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return;
  std::fprintf(stderr, "attest: %s failed: %s\n", call, cudaGetErrorName(code));
}

}  // namespace attest
