#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/attention/problem.hpp"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

/// Rows of a kv head: its query heads' queries, which read the same keys.
inline std::int64_t rows_of_kv_head(const Problem& problem) {
  return problem.query_len * (problem.query_heads / problem.kv_heads);
}

/// Into how many splits keys are best cut where `tiles` output tiles alone do not fill the `slots`
/// blocks that the GPU runs at a time: the fewest whose rounds of blocks come within a twentieth of
/// the shortest. A split has enough keys to pay for its merge.
inline std::int64_t splits_to_fill(std::int64_t tiles, std::int64_t keys, std::int64_t slots) {
  constexpr std::int64_t least_keys = 128, most_splits = 128;
  const std::int64_t most = std::clamp<std::int64_t>(keys / least_keys, 1, most_splits);
  const auto rounds = [&](std::int64_t splits) { return ceil_div(tiles * splits, slots); };
  std::int64_t best = 1;
  for (std::int64_t splits = 2; splits <= most; ++splits) {
    if (20 * rounds(splits) * best < 19 * rounds(best) * splits) best = splits;
  }
  return best;
}

/// Numbers of splits to try in a race: the rule's own first, then powers of two.
inline std::vector<std::int64_t> splits_to_try(std::int64_t tiles, std::int64_t keys,
                                               std::int64_t slots) {
  std::vector<std::int64_t> all{splits_to_fill(tiles, keys, slots)};
  for (std::int64_t splits = 1; splits <= 64 && 64 * splits <= keys; splits *= 2) {
    if (splits != all.front()) all.push_back(splits);
  }
  return all;
}

}  // namespace attest
