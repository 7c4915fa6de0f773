// O7, two-pass attention [claims O7]: Q K^T is computed twice, and no score need be kept.
//
//   pass 1  m and l over key blocks, online
//   pass 2  the scores again, p_j = e^(s_j - m) / l, O = sum p_j v_j
//
// 6 D operations a (query, key) pair instead of 4 D, K read twice: the control for the claim that
// one pass is twice as fast. Roundings: the second Q K^T repeats the first to the bit; for l see
// o3_two_pass_online.cpp.

#include <cmath>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

float attend(const AttentionRow& row, const Plan& plan, std::span<float> o) {
  OnlineState statistics;
  const std::vector<float> first_pass = row.scores();
  for (const auto& tile : tiles_of(first_pass, plan.key_tile)) {
    statistics.update(tile.scores, nullptr);
  }
  const std::vector<float> s = row.scores();
  for (std::int64_t j = 0; j < row.visible; ++j) {
    const float weight = std::exp(s[static_cast<std::size_t>(j)] - statistics.m);
    row.add_value(weight / statistics.l, j, o);
  }
  return statistics.finish({});
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::none;
  result.blocks = tile_count(problem.key_len, plan.key_tile);
  return result;
}

const KernelRegistration registration(
    row_kernel({.name = "o7_two_pass_attention",
                .summary = "Q K^T twice: once for maximum and sum, once for the output",
                .source = "claims O7",
                .precision = precision,
                .plans = key_tile_plans},
               attend));

}  // namespace
}  // namespace attest
