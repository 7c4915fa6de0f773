#pragma once

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>

#include <string>
#include <type_traits>

namespace attest {

/// One line why CUPTI could not be opened; empty when it could. Opens it on the first call: the
/// file $ATTEST_CUPTI, the loader's path, the CUDA toolkit, Python's packages.
[[nodiscard]] const std::string& why_no_cupti();

/// A function of the opened library; throws MachineError where there is none.
[[nodiscard]] void* cupti_function(const char* name);
/// Throws MachineError unless the call succeeded; it says what to do where the machine forbids its
/// counters.
void check_cupti(CUptiResult result, const char* call);
/// The sentence of check_cupti.
[[nodiscard]] std::string cupti_failure(CUptiResult result, const std::string& call,
                                        const std::string& meaning);

/// Calls the function of CUPTI with `&params`, its result unchecked. All that we use take one
/// structure.
template <typename Params>
CUptiResult ask_cupti(const char* function, Params& params) {
  return reinterpret_cast<CUptiResult (*)(Params*)>(cupti_function(function))(&params);
}

}  // namespace attest

/// Parameters of a function of CUPTI, all zero but their size.
#define ATTEST_CUPTI_PARAMS(type, name) \
  type name{};                          \
  name.structSize = type##_STRUCT_SIZE
/// Calls a function of CUPTI; throws MachineError when it fails. The header's declaration is asked
/// whether it takes `params`, and never linked.
#define ATTEST_CUPTI_CHECK(function, params)                                  \
  do {                                                                        \
    static_assert(std::is_same_v<decltype(function(&params)), CUptiResult>);  \
    ::attest::check_cupti(::attest::ask_cupti(#function, params), #function); \
  } while (false)
