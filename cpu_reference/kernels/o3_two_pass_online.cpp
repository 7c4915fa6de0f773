// O3, online softmax in two passes [claims O3; Milakov and Gimelshein 2018, Alg. 3].
//
//   pass 1  m' = max(m, s_j),  l' = l e^(m - m') + e^(s_j - m')      key by key
//   pass 2  p_j = e^(s_j - m) / l,  O = sum p_j v_j
//
// Roundings: pass 2 knows the final maximum, so the weights suffer no rescale. But l was built by
// other evaluations of e^x than the weights, so its error does not cancel in the quotient as it
// does in the one-pass forms. The precision plan says so: no rescale, yet a block a key.

#include <cmath>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

float attend(const AttentionRow& row, const Plan& /*plan*/, std::span<float> o) {
  const std::vector<float> s = row.scores();
  OnlineState statistics;
  for (const float& score : s) statistics.update({&score, 1}, nullptr);
  for (std::int64_t j = 0; j < row.visible; ++j) {
    const float weight = std::exp(s[static_cast<std::size_t>(j)] - statistics.m);
    row.add_value(weight / statistics.l, j, o);
  }
  return statistics.finish({});
}

PrecisionPlan precision(const Problem& problem, const Plan& /*plan*/) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::none;
  result.blocks = tile_count(problem.key_len, 1);
  return result;
}

const KernelRegistration registration(
    row_kernel({.name = "o3_two_pass_online",
                .summary = "maximum and sum key by key in one pass, weights in a second",
                .source = "claims O3",
                .precision = precision,
                .plans = no_plan_choice},
               attend));

}  // namespace
}  // namespace attest
