#pragma once

// Merges what a rank's launches gave: (O_p, LSE_p) of some of its rows each.
//
// Idea
//   A thread has eight columns of a row: one load of 16 bytes a part. It reads the row's LSE_p
//   twice, first for the largest, M, then for the weights exp(LSE_p - M), and adds weight times O_p
//   in fp32, in the order of the steps. Threads of a row form the same weights; there are few
//   parts.
// Empty parts
//   LSE_p = -infinity: the part has seen nothing and is not read. No part at all: O = 0, LSE =
//   -infinity. A NaN LSE_p is dropped by fmaxf and comes back as a NaN weight.
#include <cstdint>

#include "gpu/kernels/ring/eight_columns.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/natural_log.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// e^x by ex2.approx of x log2(e), which the executor repeats bit for bit.
struct MergeExp {
  static __device__ float of(float x) { return HardwareExp2::of(x * 1.44269504F); }
};

/// Result of one launch of a rank.
struct RingPart {
  std::int64_t first_row = 0, rows = 0;  ///< of the rank
  const void* o = nullptr;               ///< [heads, rows of the rank, pitch]
  const float* lse = nullptr;            ///< [heads, rows]
};

struct RingMerge {
  RingPart parts[most_ring_parts] = {};
  int count = 0;
  std::int64_t heads = 0, rows = 0;  ///< heads of all entries
  std::int64_t pitch = 0;            ///< from row to row of every O: a multiple of 8
  std::int64_t columns = 0;          ///< of a row; there are none behind them
  void* o = nullptr;                 ///< [heads, rows, pitch]
  float* lse = nullptr;              ///< [heads, rows]
};

/// Merges the thread's eight columns of a row of a head.
template <typename T>
__device__ void merge_row(const RingMerge& m, std::int64_t head, std::int64_t row) {
  const std::int64_t column = std::int64_t{threadIdx.x} * row_columns;
  const std::int64_t first = (head * m.rows + row) * m.pitch + column;

  const auto lse_of = [&](const RingPart& part) {
    const std::int64_t n = row - part.first_row;
    return n < 0 || n >= part.rows ? -INFINITY : part.lse[head * part.rows + n];
  };
  float M = -INFINITY;
  for (int p = 0; p < m.count; ++p) M = fmaxf(M, lse_of(m.parts[p]));
  float L = 0.0F;
  float sums[row_columns] = {};
  for (int p = 0; p < m.count; ++p) {
    const float lse = lse_of(m.parts[p]);
    if (lse == -INFINITY) continue;
    const float weight = exp_below<MergeExp>(lse, M);
    L += weight;
    EightColumns<T> part;
    part.load(static_cast<const T*>(m.parts[p].o) + first, m.columns - column);
#pragma unroll
    for (int c = 0; c < row_columns; ++c) sums[c] = fmaf(weight, to_float(part[c]), sums[c]);
  }
  EightColumns<T> result;
#pragma unroll
  for (int c = 0; c < row_columns; ++c) result[c] = from_float<T>(sums[c] / divisor_of(L));
  result.store(static_cast<T*>(m.o) + first, m.columns - column);
  if (column == 0) m.lse[head * m.rows + row] = M + ln_of(L);
}

template <Executor home, typename T>
__global__ void ring_merge(const __grid_constant__ RingMerge m) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= m.rows) return;
  for (std::int64_t head = blockIdx.y; head < m.heads; head += gridDim.y)
    merge_row<T>(m, head, row);
}

template <Executor home>
void merge_parts(const RingMerge& m, ElementType type, Device& device) {
  if (m.heads == 0 || m.rows == 0) return;
  const RowThreads threads(m.heads, m.rows, m.pitch);
  with_sixteen_bits(type, [&]<typename T>(std::type_identity<T>) {
    launch(ring_merge<home, T>, threads.grid, threads.block, 0, device, m);
  });
}

}  // namespace attest
