#pragma once

#include <attest/plugin.h>

#include <cstdint>

// What the plugins of other operations than attention have in common.
namespace host_kernel {

/// A row of a tensor of a run.
inline float* row(const AttestRun& run, const char* name, std::int64_t b, std::int64_t h,
                  std::int64_t n) {
  const AttestTensor& t = *attest_tensor(&run, name);
  return static_cast<float*>(t.data) + attest_offset(&t, b, h, n);
}

/// A kernel on the host, in fp32 and without a mask, that has nothing to choose.
inline AttestKernel described(const char* operation, const char* name,
                              decltype(AttestKernel::run) run) {
  static const AttestFormat types[] = {ATTEST_FP32};
  static const AttestPlan plans[] = {{nullptr, 0}};
  AttestKernel kernel{};
  kernel.size = sizeof kernel;
  kernel.operation = operation;
  kernel.name = name;
  kernel.element_types = types;
  kernel.element_type_count = 1;
  kernel.masks = ATTEST_NO_MASK;
  kernel.plans = plans;
  kernel.plan_count = 1;
  kernel.run = run;
  return kernel;
}

}  // namespace host_kernel
