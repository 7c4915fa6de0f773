#include "gpu/runtime/cupti_library.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "gpu/runtime/shared_library.hpp"

namespace attest {

namespace {

/// CUPTI of the version that this program was built with: structures grow with it.
const SharedLibrary& library() {
  constexpr int major = CUDART_VERSION / 1000;
  static const SharedLibrary opened(
      fmt::format("libcupti.so.{}", major), "ATTEST_CUPTI",
      cuda_library_folders({fmt::format("cu{}", major), "cuda_cupti"}));
  return opened;
}

}  // namespace

const std::string& why_no_cupti() {
  return library().why_missing();
}

void* cupti_function(const char* name) {
  void* const function = library().function(name);
  if (function == nullptr) {
    throw MachineError("no hardware counters: " +
                       (why_no_cupti().empty()
                            ? fmt::format("{} has no function {}", library().path(), name)
                            : why_no_cupti()));
  }
  return function;
}

std::string cupti_failure(CUptiResult result, const std::string& call, const std::string& meaning) {
  const std::string said = fmt::format("({}: {})", call, meaning);
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return fmt::format(
          "this machine forbids hardware counters: run as root, or have its administrator load the "
          "nvidia module with NVreg_RestrictProfilingToAdminUsers=0, on a virtual GPU allow "
          "profiling {}",
          said);
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return fmt::format(
          "another profiler holds the hardware counters: end it, or run without ncu or nsys {}",
          said);
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
      return fmt::format("the GPU has no hardware counters as it is configured {}", said);
    default:
      return fmt::format("no hardware counters: CUPTI failed {}", said);
  }
}

void check_cupti(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  const char* meaning = nullptr;
  using ResultString = CUptiResult (*)(CUptiResult, const char**);
  (void)reinterpret_cast<ResultString>(cupti_function("cuptiGetResultString"))(result, &meaning);
  throw MachineError(cupti_failure(
      result, call,
      meaning == nullptr ? fmt::format("error {}", static_cast<int>(result)) : meaning));
}

}  // namespace attest
