#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/attention/problem.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/pair_products.cuh"

namespace attest {
// The file is compiled twice into one program, for the GPU and for the executor.
namespace {

constexpr std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The rows of one launch: queries [first, first + count) of `heads` query heads, `step` apart.
/// Heads are counted over all entries of the batch.
struct Chunk {
  std::int64_t head, heads, step, first, count;
};
/// Rows of a launch that one block works on: all of one head. Scratch memory holds the rows of one
/// head after those of another.
struct HeadRows {
  std::int64_t batch, head, first, count;
  std::int64_t scratch_row;  ///< where the first row lies in scratch memory
};

__device__ HeadRows rows_of_block(const Problem& p, const Chunk& c) {
  const std::int64_t slot = blockIdx.z, head = c.head + slot * c.step;
  return {head / p.query_heads, head % p.query_heads, c.first, c.count, slot * c.count};
}
/// Among the heads of all entries, like the first row of them below.
__device__ std::int64_t kv_head(const Problem& p, const HeadRows& c) {
  return c.batch * p.kv_heads + p.kv_head_of(c.head);
}
__device__ std::int64_t row_of(const Problem& p, const HeadRows& c) {
  return (c.batch * p.query_heads + c.head) * p.query_len + c.first;
}

/// Part of a problem that `pairs` (query, key) pairs of scratch memory hold: rows of one head, or
/// several whole heads, of `heads` that there are. On the executor few do, where several chunks are
/// what is to be tested.
struct ChunkSize {
  std::int64_t rows, heads;
};
ChunkSize chunk_size(const Problem& problem, std::int64_t heads, std::int64_t pairs) {
  constexpr std::int64_t most_blocks = 65535;  // along z
  if (this_executor != Executor::gpu) pairs = 1 << 13;
  const std::int64_t keys = std::max<std::int64_t>(problem.key_len, 1);
  const std::int64_t queries = std::max<std::int64_t>(problem.query_len, 1);
  const std::int64_t rows = std::max<std::int64_t>(pairs / keys / tile_rows, 1) * tile_rows;
  if (rows < queries) return {rows, 1};
  return {queries, std::clamp<std::int64_t>(pairs / keys / queries, 1,
                                            std::clamp<std::int64_t>(heads, 1, most_blocks))};
}

__device__ double finite_or_zero(float x) {
  return std::isfinite(x) ? static_cast<double>(x) : 0.0;
}

}  // namespace
}  // namespace attest
