// O6, partition and combine [claims O6; Flash-Decoding; paged attention]. Each part of the keys
// yields a finished answer of its own and the numbers that weigh it:
//
//   part p    (m_p, l_p, O_p)  with  O_p = acc_p / l_p
//   combine   M = max m_p,  w_p = l_p e^(m_p - M),  O = sum w_p O_p / sum w_p,  LSE = M + ln sum
//   w_p
//
// Parts are cut from the whole key range, as a grid is, so under a causal mask late parts see no
// key of early rows: m_p = -inf and l_p = 0 add nothing. Several parts may be empty when there are
// more of them than key tiles.

#include <cmath>
#include <limits>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

struct Part {
  float m = 0, l = 0;
  std::vector<float> o;
};

Part attend_part(const AttentionRow& row, std::span<const ScoreTile> tiles) {
  const std::size_t head_dim = row.query.size();
  OnlineState state(static_cast<std::int64_t>(head_dim));
  for (const auto& [first, s] : tiles) state.update(s, row.value(first));
  Part part{.m = state.m, .l = state.l, .o = std::vector<float>(head_dim)};
  static_cast<void>(state.finish(part.o));
  return part;
}

float attend(const AttentionRow& row, const Plan& plan, std::span<float> o) {
  const std::vector<float> scores = row.scores();
  std::vector<Part> parts;
  float m = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < plan.key_splits; ++i) {
    const KeyRange keys = split_range(row.key_len, plan.key_tile, plan.key_splits, i);
    parts.push_back(attend_part(row, tiles_of(scores, keys, plan.key_tile)));
    m = maximum(m, parts.back().m);
  }
  float l = 0;
  std::vector<float> acc(o.size(), 0.0F);
  for (const Part& part : parts) {
    if (part.l == 0.0F) continue;  // saw no key; where none did, m_p - M would be -inf - -inf
    const float weight = part.l * std::exp(part.m - m);
    l += weight;
    for (std::size_t c = 0; c < acc.size(); ++c) acc[c] = std::fma(weight, part.o[c], acc[c]);
  }
  return finish_row(m, l, acc, o);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::deferred;
  result.blocks = tile_count(problem.key_len, plan.key_tile);
  result.splits = plan.key_splits;
  result.merge = Merge::normalised_sums;
  result.normaliser_chain += plan.key_splits;
  return result;
}

std::vector<Plan> plans(const Problem& /*problem*/) {
  return {{.key_tile = 1, .key_splits = 2},  {.key_tile = 1, .key_splits = 7},
          {.key_tile = 3, .key_splits = 3},  {.key_tile = 16, .key_splits = 1},
          {.key_tile = 16, .key_splits = 2}, {.key_tile = 16, .key_splits = 7},
          {.key_tile = 64, .key_splits = 3}};
}

const KernelRegistration registration(
    row_kernel({.name = "o6_split_combine",
                .summary = "key range in parts, each finished alone, then combined by their sums",
                .source = "claims O6",
                .precision = precision,
                .plans = plans},
               attend));

}  // namespace
}  // namespace attest
