#pragma once

// Scores of a tile of keys for one query, by tensor cores or by FMAs.
//
// Idea
//   The heads of a query are the rows of a product, 16 at a time, and keys its columns. A warp
//   holds 32 keys (16 past head dim 128) as fragments in registers while the heads pass by; what a
//   head adds to a key's score never leaves them. Blocks of one tile and neighbouring queries are
//   neighbours, so that K comes from memory once. fp32, and head dims past 256, take FMAs: a key a
//   thread, eight heads at a time from shared memory.
// Legend
//   g, t of a lane: 4 g + t, as gpu/primitives/mma.cuh has them; step: 16 columns of the head dim;
//   group: 8 keys.
// Barriers
//   Of score_by_fmas alone: before queries in shared memory are read, and before others replace
//   them.

#include "gpu/kernels/radix_select/ordered_score.cuh"
#include "gpu/kernels/radix_select/row.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/mma.cuh"

namespace attest {
namespace radix_select {

inline constexpr int score_warps = 4;
inline constexpr int score_threads = score_warps * lanes;
inline constexpr int heads_of_chunk = 8;  ///< that score_by_fmas takes at a time

/// Keys that a block of score_by_mma scores.
ATTEST_HOST_DEVICE constexpr int keys_of_tile(int steps) {
  return score_warps * (steps <= 8 ? 32 : 16);
}

/// max(score, 0) that keeps NaN.
inline __device__ float above_zero(float score) {
  return score < 0.0F ? 0.0F : score;
}

/// A block's query and tile of its keys; the workspace holds nothing of keys outside
/// [first, past).
struct ScoreTile {
  Row row;
  int begin;

  __device__ ScoreTile(const SelectArguments& a, int tile_keys)
      : row(a, blockIdx.x % (a.problem.batch * a.problem.query_len)),
        begin(static_cast<int>(blockIdx.x / (a.problem.batch * a.problem.query_len)) * tile_keys) {}
  __device__ bool is_empty(int tile_keys) const {
    return begin >= row.past || begin + tile_keys <= row.first;
  }
  __device__ void write(const SelectArguments& a, int key, float score) const {
    if (key < row.first || key >= row.past) return;
    row.scores(a)[key] = row.is_padded(a, key) ? hidden : ordered_bits(score);
  }
};

/// Rows of 16-bit numbers in memory, read two neighbouring columns at a time.
class Pairs {
 public:
  __device__ Pairs(const void* data, const Strides& strides, int columns)
      : data_(static_cast<const std::uint16_t*>(data)),
        columns_(columns),
        is_aligned_(((reinterpret_cast<std::uintptr_t>(data) >> 1U |
                      static_cast<std::uint64_t>(strides.batch | strides.head | strides.row) |
                      static_cast<std::uint64_t>(columns)) &
                     1U) == 0) {}
  /// Columns `column`, even, and the next of the row at `offset`; 0 past the last.
  __device__ unsigned at(std::int64_t offset, int column) const {
    const std::uint16_t* const from = data_ + offset + column;
    if (column >= columns_) return 0;
    if (is_aligned_) return *reinterpret_cast<const unsigned*>(from);
    const unsigned next = column + 1 < columns_ ? from[1] : 0U;
    return from[0] | next << 16U;
  }

 private:
  const std::uint16_t* data_;
  int columns_;
  bool is_aligned_;
};

/// `home`: the executor's kernel and the GPU's are two, by name.
template <Executor home, typename T, int steps>
__global__ void __launch_bounds__(score_threads) score_by_mma(SelectArguments a) {
  constexpr int tile_keys = keys_of_tile(steps), groups = tile_keys / score_warps / 8;
  const ScoreTile tile(a, tile_keys);
  if (tile.is_empty(tile_keys)) return;
  const Row& row = tile.row;
  const Problem& problem = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const int g = lane / 4, t = lane % 4;
  const int first_key = tile.begin + warp * groups * 8;
  const Pairs q(a.q, a.q_strides, static_cast<int>(problem.head_dim));
  const Pairs k(a.k, a.k_strides, static_cast<int>(problem.head_dim));
  const int heads_of_key = static_cast<int>(problem.query_heads / problem.kv_heads);

  float sums[groups][2] = {};
  for (int kv_head = 0; kv_head < problem.kv_heads; ++kv_head) {
    unsigned keys[groups][steps][2];
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      const int key = first_key + group * 8 + g;
      const bool exists = key < row.keys.count;
      const std::int64_t at =
          a.k_strides.offset(row.keys.at, kv_head, row.keys.first + (exists ? key : 0));
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        keys[group][step][0] = exists ? k.at(at, 16 * step + 2 * t) : 0U;
        keys[group][step][1] = exists ? k.at(at, 16 * step + 2 * t + 8) : 0U;
      }
    }
    const int past_head = (kv_head + 1) * heads_of_key;
    for (int head = kv_head * heads_of_key; head < past_head; head += 16) {
      const int low = head + g, high = head + g + 8;
      const bool has_low = low < past_head, has_high = high < past_head;
      const std::int64_t query = row.queries.first + row.query;
      const std::int64_t at_low = a.q_strides.offset(row.queries.at, has_low ? low : head, query);
      const std::int64_t at_high =
          a.q_strides.offset(row.queries.at, has_high ? high : head, query);
      float scores[groups][4] = {};
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        const int column = 16 * step + 2 * t;
        const unsigned queries[4] = {
            has_low ? q.at(at_low, column) : 0U, has_high ? q.at(at_high, column) : 0U,
            has_low ? q.at(at_low, column + 8) : 0U, has_high ? q.at(at_high, column + 8) : 0U};
#pragma unroll
        for (int group = 0; group < groups; ++group) {
          mma_16x8x16<T>(scores[group], queries, keys[group][step]);
        }
      }
      // Rows past the last head have no part in it: an infinite key times their 0 is NaN.
      const float w_low = has_low ? row.weight(a, low) : 0.0F;
      const float w_high = has_high ? row.weight(a, high) : 0.0F;
#pragma unroll
      for (int group = 0; group < groups; ++group) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& sum = sums[group][j];
          if (has_low) sum = fmaf(w_low, above_zero(problem.scale * scores[group][j]), sum);
          if (has_high) sum = fmaf(w_high, above_zero(problem.scale * scores[group][j + 2]), sum);
        }
      }
    }
  }
#pragma unroll
  for (int group = 0; group < groups; ++group) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float sum = sums[group][j];
      for (int distance = 4; distance < lanes; distance *= 2) {
        sum += __shfl_xor_sync(0xffffffffU, sum, distance);
      }
      if (g == 0) tile.write(a, first_key + group * 8 + 2 * t + j, sum);
    }
  }
}

template <Executor home, typename T>
__global__ void __launch_bounds__(score_threads) score_by_fmas(SelectArguments a) {
  const ScoreTile tile(a, score_threads);
  if (tile.is_empty(score_threads)) return;
  const Row& row = tile.row;
  const Problem& problem = a.problem;
  const int dim = static_cast<int>(problem.head_dim);
  const int heads_of_key = static_cast<int>(problem.query_heads / problem.kv_heads);
  const int key = tile.begin + static_cast<int>(threadIdx.x);
  float* const queries = dynamic_shared<float>();  // [dim, heads_of_chunk]

  float sum = 0.0F;
  for (int kv_head = 0; kv_head < problem.kv_heads; ++kv_head) {
    const bool exists = key < row.keys.count;
    const T* const k =
        static_cast<const T*>(a.k) +
        a.k_strides.offset(row.keys.at, kv_head, row.keys.first + (exists ? key : 0));
    const int past_head = (kv_head + 1) * heads_of_key;
    for (int head = kv_head * heads_of_key; head < past_head; head += heads_of_chunk) {
      const int heads = min(heads_of_chunk, past_head - head);
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < dim * heads; i += score_threads) {
        const int h = i / dim, d = i % dim;
        const T* const q =
            static_cast<const T*>(a.q) +
            a.q_strides.offset(row.queries.at, head + h, row.queries.first + row.query);
        queries[d * heads_of_chunk + h] = to_float(q[d]);
      }
      __syncthreads();
      float dots[heads_of_chunk] = {};
      for (int d = 0; exists && d < dim; ++d) {
        const float x = to_float(k[d]);
#pragma unroll
        for (int h = 0; h < heads_of_chunk; ++h) {
          if (h < heads) dots[h] = fmaf(queries[d * heads_of_chunk + h], x, dots[h]);
        }
      }
#pragma unroll
      for (int h = 0; h < heads_of_chunk; ++h) {
        if (h < heads)
          sum = fmaf(row.weight(a, head + h), above_zero(problem.scale * dots[h]), sum);
      }
    }
  }
  tile.write(a, key, sum);
}

}  // namespace radix_select
}  // namespace attest
