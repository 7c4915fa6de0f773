#include "gpu/runtime/stream_values.hpp"

#include "core/base/error.hpp"
#include "gpu/runtime/driver.hpp"

namespace attest {
namespace {

constexpr unsigned interface_version = 11070;  // of both

void check_value_operation(CUresult result, const char* call) {
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    throw MachineError(
        fmt::format("{} is not supported: this GPU or its driver has no memory operations of "
                    "streams, which ranks of several processes wait by",
                    call));
  }
  check_driver(result, call);
}

/// Writes of another GPU that came before the value are to be seen behind it, too.
unsigned conditions_of_wait() {
  int gpu = 0, can_flush = 0;
  ATTEST_CUDA_CHECK(cudaGetDevice(&gpu));
  ATTEST_CUDA_CHECK(cudaDeviceGetAttribute(&can_flush, cudaDevAttrCanFlushRemoteWrites, gpu));
  unsigned conditions = CU_STREAM_WAIT_VALUE_GEQ;
  if (can_flush != 0) conditions |= CU_STREAM_WAIT_VALUE_FLUSH;
  return conditions;
}

}  // namespace

void write_value(cudaStream_t stream, std::uint32_t* at, std::uint32_t value) {
  static const auto write =
      driver_function<PFN_cuStreamWriteValue32_v11070>("cuStreamWriteValue32", interface_version);
  check_value_operation(
      write(stream, reinterpret_cast<CUdeviceptr>(at), value, CU_STREAM_WRITE_VALUE_DEFAULT),
      "cuStreamWriteValue32");
}

void wait_for_value(cudaStream_t stream, const std::uint32_t* at, std::uint32_t value) {
  static const auto wait =
      driver_function<PFN_cuStreamWaitValue32_v11070>("cuStreamWaitValue32", interface_version);
  check_value_operation(
      wait(stream, reinterpret_cast<CUdeviceptr>(at), value, conditions_of_wait()),
      "cuStreamWaitValue32");
}

}  // namespace attest
