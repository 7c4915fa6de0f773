// O5, one pass with deferred normalisation [claims O5; FA2 Alg. 1]: the default form of this
// repository.
//
//   per block  m' = max(m, max of the block),  l' = l e^(m - m') + sum p_j,  acc' = acc e^(m - m')
//   + sum p_j v_j at the end O = acc / l,  LSE = m + ln l                                 with p_j
//   = e^(s_j - m')

#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

float attend(const AttentionRow& row, const Plan& plan, std::span<float> o) {
  OnlineState state(static_cast<std::int64_t>(o.size()));
  const std::vector<float> scores = row.scores();
  for (const auto& [first, s] : tiles_of(scores, plan.key_tile)) state.update(s, row.value(first));
  return state.finish(o);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::deferred;
  result.blocks = tile_count(problem.key_len, plan.key_tile);
  return result;
}

const KernelRegistration registration(
    row_kernel({.name = "o5_deferred",
                .summary = "one pass over key blocks, one division at the end",
                .source = "claims O5, FA2 Alg. 1",
                .precision = precision,
                .plans = key_tile_plans},
               attend));

}  // namespace
}  // namespace attest
