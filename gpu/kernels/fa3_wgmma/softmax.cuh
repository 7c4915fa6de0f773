#pragma once

#include <cfloat>
#include <cmath>

#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// A weight may be up to 2^this: so much below its row's largest score a reference may lie.
inline constexpr int fa3_reference_lag = 8;

/// Online softmax of a warp's 16 rows, whose scores lie in a wgmma accumulator: a lane has keys 8 j
/// + 2 t and 8 j + 2 t + 1 of rows g and g + 8, at s[4 j], s[4 j + 1] and s[4 j + 2], s[4 j + 3].
///
/// Weights are 2^(c s - r), r a reference at most fa3_reference_lag below the row's largest c s so
/// far, in units of log2. A tile can so be weighed before anyone knows its maximum: if the sum of a
/// lane's weights is at most 2^lag, no weight was larger. Only where it is not are scores looked
/// through, references raised, and O and l rescaled.
template <int Bc>
struct Fa3Softmax {
  static constexpr int scores = Bc / 2, columns = Bc / 8;
  static constexpr float largest_weight = 1U << fa3_reference_lag;
  /// Past it c s - r in one rounding would differ from rounded c s minus r by more than 2^-8.
  static constexpr float large = 0x1p16F;

  float r[2] = {-FLT_MAX, -FLT_MAX};
  float l[2] = {0.0F, 0.0F};  ///< of this lane's keys
  float keep[2];              ///< what O must be multiplied by when weigh() says so
  bool is_special = true;     ///< some row of the warp has no reference yet, or a large one

  /// Scores become weights, l adds them before they are rounded. True where references were raised:
  /// O must then be multiplied by keep. References are raised to the largest score; after
  /// weigh_unseen() only those of rows for which it would have failed alone, so that no row's bits
  /// hang on its neighbours.
  __device__ __forceinline__ bool weigh(float (&s)[scores], float c, bool is_unseen) {
    bool may_rise[2] = {true, true};
    if (is_unseen) find_misfits(s, c, may_rise);
    const bool has_risen = see(s, c, may_rise);
    float below[2], sum[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) below[h] = fabsf(r[h]) > large ? 0.0F : r[h];
    weigh_below(s, c, below, sum);
    l[0] += sum[0];
    l[1] += sum[1];
    return has_risen;
  }

  /// The same for a tile in which no score passes its reference by more than lag. False where one
  /// does, or is NaN, or a row is special: then l is as before and s is lost.
  __device__ __forceinline__ bool weigh_unseen(float (&s)[scores], float c) {
    if (is_special) return false;
    float sum[2];
    weigh_below(s, c, r, sum);
    const bool fits = sum[0] <= largest_weight && sum[1] <= largest_weight;
    if (!__all_sync(0xffffffffU, fits)) return false;
    l[0] += sum[0];
    l[1] += sum[1];
    return true;
  }

  /// The sum over a row's four lanes, in each of them.
  static __device__ float over_row(float x) {
    x += __shfl_xor_sync(0xffffffffU, x, 1);
    return x + __shfl_xor_sync(0xffffffffU, x, 2);
  }

 private:
  static __device__ __forceinline__ void weigh_below(float (&s)[scores], float c,
                                                     const float (&below)[2], float (&sum)[2]) {
#pragma unroll
    for (int i = 0; i < scores; ++i) s[i] = HardwareExp2::of(fmaf(s[i], c, -below[i / 2 % 2]));
    sum[0] = sum[1] = 0.0F;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        sum[h] += s[4 * j + 2 * h];
        sum[h] += s[4 * j + 2 * h + 1];
      }
    }
  }

  /// Rows for which weigh_unseen() fails.
  __device__ __forceinline__ void find_misfits(const float (&s)[scores], float c,
                                               bool (&misfit)[2]) const {
    float sum[2];
    float weights[scores];
#pragma unroll
    for (int i = 0; i < scores; ++i) weights[i] = s[i];
    weigh_below(weights, c, r, sum);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool fits = fabsf(r[h]) <= large && sum[h] <= largest_weight;
      const unsigned misfits = __ballot_sync(0xffffffffU, !fits);
      misfit[h] = (misfits >> (threadIdx.x % 32 & ~3U) & 0xfU) != 0;
    }
  }

  __device__ __forceinline__ bool see(float (&s)[scores], float c, const bool (&may_rise)[2]) {
    float largest[2];
    bool has_risen = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float even = fmaxf(s[2 * h], s[2 * h + 1]);  // two chains: half the latency
      float odd = fmaxf(s[4 + 2 * h], s[4 + 2 * h + 1]);
#pragma unroll
      for (int j = 2; j < columns; j += 2) {
        even = fmaxf(even, fmaxf(s[4 * j + 2 * h], s[4 * j + 2 * h + 1]));
        odd = fmaxf(odd, fmaxf(s[4 * j + 4 + 2 * h], s[4 * j + 4 + 2 * h + 1]));
      }
      largest[h] = fmaxf(even, odd) * c;
      has_risen |= may_rise[h] && largest[h] > r[h];
    }
    const bool any = __any_sync(0xffffffffU, has_risen);
    if (any) raise(largest, may_rise);
    if (is_special) round_products(s, c);
    return any;
  }

  __device__ __forceinline__ void raise(const float (&largest)[2], const bool (&may_rise)[2]) {
    bool special = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = largest[h];
      top = fmaxf(top, __shfl_xor_sync(0xffffffffU, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffU, top, 2));
      const float risen = may_rise[h] && top > r[h] ? top : r[h];
      keep[h] = HardwareExp2::of(r[h] - risen);  // 1 for a row that stays
      r[h] = risen;
      l[h] *= keep[h];
      special |= !(fabsf(risen) <= large);
    }
    is_special = __any_sync(0xffffffffU, special);
  }

  /// In rows of large scores: s becomes (fl(c s) - r) / c, and nothing is left to subtract.
  __device__ __forceinline__ void round_products(float (&s)[scores], float c) const {
    const float per_c = 1.0F / c;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (!(fabsf(r[h]) > large && r[h] > -FLT_MAX)) continue;
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        s[4 * j + 2 * h] = (s[4 * j + 2 * h] * c - r[h]) * per_c;
        s[4 * j + 2 * h + 1] = (s[4 * j + 2 * h + 1] * c - r[h]) * per_c;
      }
    }
  }
};

}  // namespace attest
