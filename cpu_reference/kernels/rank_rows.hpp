#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/run/rank_group.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/forward/online_softmax_rows.hpp"
#include "cpu_reference/kernels/tensor_rows.hpp"

// What kernels of several ranks share: keys of whichever rank, and rows that see some of them.
namespace attest {

/// Keys and values of one head of one entry, decoded, and which tokens they are.
struct RankKeys {
  std::span<const std::int64_t> tokens;  ///< of each key: its position in the entry
  std::vector<float> keys;               ///< [head_dim, count]
  std::vector<float> values;             ///< [count, output_dim]

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(tokens.size()); }
};

/// `k` and `v` are [heads, rows, columns]; `head` counts in them.
inline RankKeys rank_keys(const Problem& p, const RankRows& rows, const void* k, const void* v,
                          std::int64_t entry, std::int64_t head) {
  const std::int64_t first = rows.starts[static_cast<std::size_t>(entry)];
  const std::int64_t count = rows.starts[static_cast<std::size_t>(entry) + 1] - first;
  RankKeys result{
      .tokens = std::span(rows.tokens)
                    .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
      .keys = std::vector<float>(static_cast<std::size_t>(p.head_dim * count)),
      .values = std::vector<float>(static_cast<std::size_t>(p.output_dim() * count))};
  const auto size = static_cast<std::ptrdiff_t>(format_of(p.element_type).size_bytes);
  std::vector<float> key(static_cast<std::size_t>(p.head_dim));
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t row = head * rows.count() + first + j;
    read_row(k, row * p.head_dim * size, p.element_type, key);
    for (std::size_t d = 0; d < key.size(); ++d) {
      result.keys[d * static_cast<std::size_t>(count) + static_cast<std::size_t>(j)] = key[d];
    }
    read_row(v, row * p.output_dim() * size, p.element_type,
             std::span(result.values)
                 .subspan(static_cast<std::size_t>(j * p.output_dim()),
                          static_cast<std::size_t>(p.output_dim())));
  }
  return result;
}

/// Adds the keys that token `query` of the entry sees, in tiles of plan.key_tile.
inline void add_keys(const Problem& p, const Plan& plan, const RankKeys& keys, std::int64_t entry,
                     std::int64_t query, std::span<const float> q, OnlineState& state) {
  for (std::int64_t first = 0; first < keys.count(); first += plan.key_tile) {
    std::vector<float> scores(
        static_cast<std::size_t>(std::min(plan.key_tile, keys.count() - first)));
    multiply_accumulate(q, keys.keys.data() + first, keys.count(), scores);
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const std::int64_t key = keys.tokens[static_cast<std::size_t>(first) + j];
      scores[j] *= p.scale;
      if (!p.sees(entry, query, key)) scores[j] = -std::numeric_limits<float>::infinity();
    }
    state.update(scores, keys.values.data() + first * p.output_dim());
  }
}

}  // namespace attest
