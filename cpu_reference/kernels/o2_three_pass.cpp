// O2, safe softmax in three passes [claims O2]: the definition, step by step.
//
//   pass 1  m = max s_j
//   pass 2  l = sum e^(s_j - m)
//   pass 3  p_j = e^(s_j - m) / l,  O = sum p_j v_j
//
// The scores are kept, so the second and third pass evaluate e^x on the same numbers and agree to
// the bit.

#include <cmath>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

float attend(const AttentionRow& row, const Plan& /*plan*/, std::span<float> o) {
  const std::vector<float> s = row.scores();
  const float m = maximum(s);
  float l = 0;
  for (const float score : s) l += std::exp(score - m);
  // o arrives as zeros. A row without keys leaves it so, and gets LSE = -inf from l = 0.
  for (std::int64_t j = 0; j < row.visible; ++j) {
    row.add_value(std::exp(s[static_cast<std::size_t>(j)] - m) / l, j, o);
  }
  return m + std::log(l);
}

PrecisionPlan precision(const Problem& problem, const Plan& /*plan*/) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::none;
  return result;
}

const KernelRegistration registration(
    row_kernel({.name = "o2_three_pass",
                .summary = "maximum, sum, weights: three passes over the scores",
                .source = "claims O2",
                .precision = precision,
                .plans = no_plan_choice},
               attend));

}  // namespace
}  // namespace attest
