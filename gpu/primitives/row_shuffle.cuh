#pragma once

#include "gpu/primitives/online_softmax.cuh"

namespace attest {

// Rows of a register tile whose threads are lanes of one warp, side by side: `row_threads`, a power
// of two up to 32, hold a row.

/// The lanes of this warp that exist: a block's last warp may be short.
inline __device__ unsigned existing_lanes() {
  const unsigned left = blockDim.x - (threadIdx.x & ~31U);
  return left >= 32 ? 0xffffffffU : (1U << left) - 1;
}

/// The result of `combine`, commutative, over the values of all lanes of the row, bit for bit the
/// same in each: log2(row_threads) exchanges. All lanes of the warp take part.
template <typename Combine>
__device__ float over_row(float value, int row_threads, const Combine& combine) {
  for (int distance = row_threads / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(existing_lanes(), value, distance));
  }
  return value;
}

/// m_new[i] <- the maximum of m[i] and the scores that row i sees. `key` is the first key of this
/// thread's scores. Not `masked`, here and below: every row sees every key of the tile.
template <bool masked = true, int TM, int TN>
__device__ __forceinline__ void row_maxima_over_lanes(const float (&s)[TM][TN], int key,
                                                      const int (&seen)[TM], int row_threads,
                                                      const float (&m)[TM], float (&m_new)[TM]) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    float tile_m = -INFINITY;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      if (!masked || key + j < seen[i]) tile_m = fmaxf(tile_m, s[i][j]);
    }
    tile_m = over_row(tile_m, row_threads, [](float a, float b) { return fmaxf(a, b); });
    m_new[i] = fmaxf(m[i], tile_m);
  }
}

/// s[i][j] <- the weight exp(s[i][j] - m[i]), 0 for a key that row i does not see.
template <typename Exp, bool masked = true, int TM, int TN>
__device__ __forceinline__ void weigh_in_registers(float (&s)[TM][TN], int key,
                                                   const int (&seen)[TM], const float (&m)[TM]) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      s[i][j] = !masked || key + j < seen[i] ? exp_below<Exp>(s[i][j], m[i]) : 0.0F;
    }
  }
}

/// l[i] += the sum of row i's weights: those of a thread one after the other, then over the lanes.
template <int TM, int TN>
__device__ __forceinline__ void add_sums_over_lanes(const float (&p)[TM][TN], int row_threads,
                                                    float (&l)[TM]) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    float sum = 0.0F;
#pragma unroll
    for (int j = 0; j < TN; ++j) sum += p[i][j];
    l[i] += over_row(sum, row_threads, [](float a, float b) { return a + b; });
  }
}

}  // namespace attest
