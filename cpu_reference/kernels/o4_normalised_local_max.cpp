// O4, one pass with O normalised at every block, tile-local maximum [claims O4, the form of S3; FA1
// Alg. 1].
//
//   m_t = max of the block,  p_j = e^(s_j - m_t),  l_t = sum p_j
//   m' = max(m, m_t),        a = e^(m - m'),       b = e^(m_t - m')
//   l' = a l + b l_t,        O' = (a l O + b sum p_j v_j) / l'
//
// The block never waits for the running maximum; each weight then carries one exponential more, b,
// than in the merged form.

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
  std::vector<float> product(o.size());
  const std::vector<float> scores = row.scores();
  for (const auto& [first, s] : tiles_of(scores, plan.key_tile)) {
    const float tile_m = maximum(s);
    if (tile_m == minus_inf) continue;  // scores of -inf only: no key of the block counts
    float tile_l = 0;
    product.assign(o.size(), 0.0F);
    for (std::size_t j = 0; j < s.size(); ++j) {
      const float weight = std::exp(s[j] - tile_m);
      tile_l += weight;
      row.add_value(weight, first + static_cast<std::int64_t>(j), product);
    }
    const float raised = maximum(m, tile_m);
    const float carry = std::exp(m - raised) * l;  // 0 in the first block, where m = -inf
    const float tile_factor = std::exp(tile_m - raised);
    m = raised;
    l = std::fma(tile_factor, tile_l, carry);
    for (std::size_t c = 0; c < o.size(); ++c) {
      o[c] = std::fma(tile_factor, product[c], carry * o[c]) / l;
    }
  }
  return m + std::log(l);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::normalised_steps;
  result.blocks = tile_count(problem.key_len, plan.key_tile);
  return result;
}

const KernelRegistration registration(row_kernel(
    {.name = "o4_normalised_local_max",
     .summary = "O kept normalised after every key block, weights at the block's own maximum",
     .source = "claims O4 (S3 form)",
     .precision = precision,
     .plans = key_tile_plans},
    attend));

}  // namespace
}  // namespace attest
