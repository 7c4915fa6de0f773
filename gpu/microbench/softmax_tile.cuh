#pragma once

#include <cstdint>

#include "gpu/microbench/exp2_cubic.cuh"

namespace attest::microbench {

__device__ inline float exp2_mufu(float y) {
  float p;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(y));
  return p;
}
__device__ inline std::uint32_t pack_bf16x2(float low, float high) {
  std::uint32_t pair;
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// Running maximum and sum of a thread's two rows.
struct TwoRows {
  float m[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
};

/// Scores s of an accumulator of wgmma become weights exp2(c (s - m)), m the new maximum; scale is
/// what O and the sum are to be multiplied with. Of 8 weights, `emulated` come from the cubic. With
/// `slack` >= 0 the old maximum stays while no row of the warp would exceed it by more: then scale
/// is 1, and the result false.
template <int emulated, int count>
__device__ inline bool softmax(float (&s)[count], TwoRows& rows, float (&scale)[2], float c,
                               float slack) {
  float next[2] = {rows.m[0], rows.m[1]};
#pragma unroll
  for (int i = 0; i < count; ++i) next[i / 2 % 2] = fmaxf(next[i / 2 % 2], s[i]);
#pragma unroll
  for (float& m : next) {
    m = fmaxf(m, __shfl_xor_sync(~0U, m, 1));
    m = fmaxf(m, __shfl_xor_sync(~0U, m, 2));
  }
  bool moved = true;
  if (slack >= 0) {
    moved = __any_sync(~0U,
                       !(c * (next[0] - rows.m[0]) <= slack && c * (next[1] - rows.m[1]) <= slack));
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    // Selected, not branched around: products may be in flight.
    if (slack >= 0) next[r] = moved ? next[r] : rows.m[r];
    scale[r] = exp2_mufu(c * (rows.m[r] - next[r]));
    rows.sum[r] *= scale[r];
    rows.m[r] = next[r];
  }
  const float shift[2] = {c * rows.m[0], c * rows.m[1]};
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float y = __fmaf_rn(s[i], c, -shift[i / 2 % 2]);
    s[i] = i % 8 < emulated ? exp2_cubic(y) : exp2_mufu(y);
    rows.sum[i / 2 % 2] = __fadd_rn(rows.sum[i / 2 % 2], s[i]);
  }
  return moved;
}

/// Weights of a tile against a reference that is not the maximum: nothing is compared, the sums of
/// this tile's weights tell afterwards whether one of them grew too large. True if a row of the
/// warp needs mend().
template <int emulated, int count>
__device__ inline bool softmax_unchecked(float (&s)[count], TwoRows& rows, float (&tile_sum)[2],
                                         float c) {
  tile_sum[0] = tile_sum[1] = 0;
  const float shift[2] = {c * rows.m[0], c * rows.m[1]};
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float y = __fmaf_rn(s[i], c, -shift[i / 2 % 2]);
    s[i] = i % 8 < emulated ? exp2_cubic(y) : exp2_mufu(y);
    tile_sum[i / 2 % 2] = __fadd_rn(tile_sum[i / 2 % 2], s[i]);
  }
  return __any_sync(~0U, !(tile_sum[0] <= 256 && tile_sum[1] <= 256));
}

/// Moves the reference of rows whose weights grew too large by a whole power of two: exact. The
/// quad agrees on it. Weights past fp32, of scores 2^128 above the reference, stay infinite: a
/// kernel would compute those scores again, these programs never meet them.
template <int count, int columns>
__device__ inline void mend(float (&s)[count], float (&o)[columns], TwoRows& rows,
                            float (&tile_sum)[2], float c) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = tile_sum[r];
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
    const int exponent = static_cast<int>(__float_as_uint(largest) >> 23U) - 127;
    const float factor =
        largest <= 256 ? 1.0F : __uint_as_float(static_cast<unsigned>(127 - exponent) << 23U);
    rows.m[r] += (largest <= 256 ? 0.0F : static_cast<float>(exponent)) / c;
    rows.sum[r] *= factor;
    tile_sum[r] *= factor;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (i / 2 % 2 == r) s[i] *= factor;
    }
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      if (i / 2 % 2 == r) o[i] *= factor;
    }
  }
}

/// The weights as A of wgmma: a[k] of the k-th 16 keys.
template <int count>
__device__ inline void pack(const float (&s)[count], std::uint32_t (&a)[count / 8][4]) {
#pragma unroll
  for (int i = 0; i < count / 2; ++i) a[i / 4][i % 4] = pack_bf16x2(s[2 * i], s[2 * i + 1]);
}

}  // namespace attest::microbench
