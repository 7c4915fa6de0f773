// O4, one pass with O normalised at every block, merged maximum [claims O4, the form of S2 and S0;
// FA1 Alg. 1].
//
//   m' = max(m, max of the block)        carry = l e^(m - m')         p_j = e^(s_j - m')
//   l' = carry + sum p_j                 O' = (carry O + sum p_j v_j) / l'
//
// O is a finished answer for the keys seen so far after every block. The price is a multiplication
// and a division of O per block, each with its rounding.

#include <cmath>
#include <limits>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

float attend(const AttentionRow& row, const Plan& plan, std::span<float> o) {
  constexpr float minus_inf = -std::numeric_limits<float>::infinity();
  float m = minus_inf;
  float l = 0;
  const std::vector<float> scores = row.scores();
  for (const auto& [first, s] : tiles_of(scores, plan.key_tile)) {
    const float raised = maximum(m, maximum(s));
    if (raised == minus_inf) continue;             // scores of -inf only: no key counts yet
    const float carry = l * std::exp(m - raised);  // 0 in the first block, where m = -inf
    m = raised;
    l = carry;
    for (float& element : o) element *= carry;
    for (std::size_t j = 0; j < s.size(); ++j) {
      const float weight = std::exp(s[j] - m);
      l += weight;
      row.add_value(weight, first + static_cast<std::int64_t>(j), o);
    }
    for (float& element : o) element /= l;
  }
  return m + std::log(l);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::normalised_steps;
  result.blocks = tile_count(problem.key_len, plan.key_tile);
  return result;
}

const KernelRegistration registration(
    row_kernel({.name = "o4_normalised_merged_max",
                .summary = "O kept normalised after every key block, weights at the merged maximum",
                .source = "claims O4 (S2 form)",
                .precision = precision,
                .plans = key_tile_plans},
               attend));

}  // namespace
}  // namespace attest
