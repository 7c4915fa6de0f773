// O1, the negative control [claims O1]: softmax without subtracting the maximum.
//
//   l = sum e^(s_j),  O = sum e^(s_j) v_j / l,  LSE = ln l
//
// Correct while every score stays within about +-87; past that e^s overflows (inf / inf = NaN) or
// all weights underflow (a row of zeros). Its precision plan is that of an ideal kernel, so
// `within_bound` must fail it on large logits, and a verifier that passes it draws no large logits.

#include <cmath>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

float attend(const AttentionRow& row, const Plan& /*plan*/, std::span<float> o) {
  const std::vector<float> s = row.scores();
  std::vector<float> acc(o.size(), 0.0F);
  float l = 0;
  for (std::int64_t j = 0; j < row.visible; ++j) {
    const float weight = std::exp(s[static_cast<std::size_t>(j)]);
    l += weight;
    row.add_value(weight, j, acc);
  }
  return finish_row(0.0F, l, acc, o);
}

PrecisionPlan precision(const Problem& problem, const Plan& /*plan*/) {
  PrecisionPlan result = row_precision(problem);
  result.shifts_by_maximum = false;
  return result;
}

const KernelRegistration registration(
    row_kernel({.name = "o1_unshifted",
                .summary = "softmax without subtracting the maximum: must fail on large logits",
                .source = "claims O1",
                .role = KernelRole::negative_control,
                .killed_by = "within_bound",
                .precision = precision,
                .plans = no_plan_choice},
               attend));

}  // namespace
}  // namespace attest
