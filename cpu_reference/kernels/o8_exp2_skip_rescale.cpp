// O8, exponentials to base 2 and no rescale while the maximum stands still [claims O8; FA4].
//
//   x_j = q.k_j,  m = max x_j,  c = fl(scale log2 e),  p_j = 2^fma(x_j, c, -fl(m c))
//   l and acc are multiplied by 2^((m - m') c) only when m' > m: where m' = m that is 1, and
//   skipping it changes no bit LSE = m scale + ln l
//
// One multiplication serves the scale and the change of base. A negative scale is taken as a
// positive one of the negated dot products, so that the largest x_j is the largest score.

#include <cmath>
#include <limits>
#include <numbers>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

float attend(const AttentionRow& row, const Plan& plan, std::span<float> o) {
  const float sign = std::copysign(1.0F, row.scale);
  const float scale = std::abs(row.scale);
  const float c = scale * std::numbers::log2e_v<float>;
  constexpr float minus_inf = -std::numeric_limits<float>::infinity();
  float m = minus_inf;
  float l = 0;
  std::vector<float> acc(o.size(), 0.0F);
  const std::vector<float> scores = row.scores(sign);
  for (const auto& [first, x] : tiles_of(scores, plan.key_tile)) {
    const float raised = maximum(m, maximum(x));
    if (raised == minus_inf) continue;  // scores of -inf only: no key counts yet
    if (raised != m) {
      // Nothing is there to be rescaled before the first key; -inf times a zero scale would be NaN.
      const float rescale = m == minus_inf ? 0.0F : std::exp2((m - raised) * c);
      m = raised;
      l *= rescale;
      for (float& a : acc) a *= rescale;
    }
    for (std::size_t j = 0; j < x.size(); ++j) {
      const float weight = std::exp2(std::fma(x[j], c, -(m * c)));
      l += weight;
      row.add_value(weight, first + static_cast<std::int64_t>(j), acc);
    }
  }
  return finish_row(m * scale, l, acc, o);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.scale_after_dot = false;
  result.exp = exp2_of_scaled_difference();
  result.blocks = tile_count(problem.key_len, plan.key_tile);
  return result;
}

const KernelRegistration registration(row_kernel(
    {.name = "o8_exp2_skip_rescale",
     .summary = "2^x with log2(e) folded into the scale; rescales only when the maximum rises",
     .source = "claims O8",
     .precision = precision,
     .plans = key_tile_plans},
    attend));

}  // namespace
}  // namespace attest
