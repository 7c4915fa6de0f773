#include "gpu/model/block_size.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <tuple>

namespace attest {
namespace {

/// The largest size of the rule that is not above `limit`; 0 when there is none.
std::int64_t round_down(std::int64_t limit, BlockSizeRule rule) {
  if (limit < 1) return 0;
  switch (rule) {
    case BlockSizeRule::integers:
      return limit;
    case BlockSizeRule::multiples_of_16:
    case BlockSizeRule::squares_of_16:
      return limit / 16 * 16;
    case BlockSizeRule::powers_of_two:
      return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(limit)));
  }
  return 0;
}

/// The next size of the rule after `size`, which may be 0.
std::int64_t next(std::int64_t size, BlockSizeRule rule) {
  switch (rule) {
    case BlockSizeRule::integers:
      return size + 1;
    case BlockSizeRule::multiples_of_16:
    case BlockSizeRule::squares_of_16:
      return size + 16;
    case BlockSizeRule::powers_of_two:
      return std::max<std::int64_t>(1, 2 * size);
  }
  return size + 1;
}

std::int64_t bytes_of_row(const BlockLayout& l) {
  return l.head_dim * (l.element_bytes + l.output_bytes) + l.statistics_bytes;
}

std::int64_t bytes_of_key(const BlockLayout& l) {
  return 2 * l.stages * l.head_dim * l.element_bytes;
}

/// Larger is better.
auto merit(const BlockLayout& layout, const BlockSize& size) {
  return std::tuple(size.query_tile * size.key_tile, -shared_bytes(layout, size),
                    -std::abs(size.query_tile - size.key_tile), -size.key_tile);
}

}  // namespace

std::int64_t shared_bytes(const BlockLayout& layout, const BlockSize& size) {
  return bytes_of_row(layout) * size.query_tile + bytes_of_key(layout) * size.key_tile +
         layout.score_bytes * size.query_tile * size.key_tile;
}

std::optional<BlockSize> largest_block(const BlockLayout& layout, std::int64_t budget_bytes,
                                       BlockSizeRule rule) {
  std::optional<BlockSize> best;
  for (std::int64_t rows = next(0, rule);; rows = next(rows, rule)) {
    const std::int64_t left = budget_bytes - bytes_of_row(layout) * rows;
    const std::int64_t keys =
        left < 0 ? 0 : round_down(left / (bytes_of_key(layout) + layout.score_bytes * rows), rule);
    if (keys == 0) return best;
    const bool is_square = rule == BlockSizeRule::squares_of_16;
    if (is_square && keys < rows) return best;
    const BlockSize size{rows, is_square ? rows : keys};
    if (!best || merit(layout, size) > merit(layout, *best)) best = size;
  }
}

ContinuousBlock continuous_block(std::int64_t head_dim, std::int64_t element_bytes,
                                 std::int64_t budget_bytes) {
  const double elements = static_cast<double>(budget_bytes) / static_cast<double>(element_bytes);
  const auto dim = static_cast<double>(head_dim);
  const double keys = std::sqrt(dim * dim + elements / 2) - dim;
  return {.query_tile = 2 * keys, .key_tile = keys};
}

BlockSize flash_attention_1_block(std::int64_t head_dim, std::int64_t element_bytes,
                                  std::int64_t budget_bytes) {
  const std::int64_t of_key = 4 * head_dim * element_bytes;
  const std::int64_t keys = (budget_bytes + of_key - 1) / of_key;
  return {.query_tile = std::min(keys, head_dim), .key_tile = keys};
}

}  // namespace attest
