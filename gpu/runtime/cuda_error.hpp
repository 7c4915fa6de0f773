#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/base/error.hpp"

namespace attest {

/// A call of the CUDA runtime failed. The message holds the call's text, the code's name, its
/// meaning and file:line.
class CudaError : public MachineError {
 public:
  CudaError(cudaError_t code, const char* call, const char* file, int line);

  [[nodiscard]] cudaError_t code() const { return code_; }
  /// The context is lost: every later call of this process fails too, so it should report and end.
  [[nodiscard]] bool is_sticky() const;

 private:
  cudaError_t code_;
};

/// Throws CudaError unless `code` is cudaSuccess.
void check_cuda(cudaError_t code, const char* call, const char* file, int line);
/// Prints one line on stderr, for destructors, which must not throw. Silent when the driver is
/// already shutting down.
void log_cuda_failure(cudaError_t code, const char* call) noexcept;

}  // namespace attest

/// Runs a CUDA runtime call and throws CudaError with its text when it fails.
#define ATTEST_CUDA_CHECK(...) ::attest::check_cuda((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
