#pragma once

#include <cfloat>
#include <cmath>

#include "gpu/kernels/lagging_softmax.cuh"

namespace attest {

/// Weights are in (0, 2^this]: those of e4m3 below 2^-6 lose bits, so the largest weight of a row
/// is near the largest number, 448, and not 1.
inline constexpr int fp8_weight_shift = 8;

/// Online softmax of a warp's 16 rows: the reference of a row is fp8_weight_shift below the largest
/// score so far. `c` of a row: scale * log2(e) times the scales of Q and K.
struct Fp8Softmax : LaggingRows<WeightSums::afterwards> {
  /// Scores become weights, l adds them before they are rounded. What O has of the keys before must
  /// be multiplied by keep.
  template <int scores>
  __device__ __forceinline__ void weigh(float (&s)[scores], const float (&c)[2]) {
    float risen[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float top = row_max(largest_score(s, h)) * c[h] - static_cast<float>(fp8_weight_shift);
      risen[h] = top > r[h] ? top : r[h];
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      keep[h] = HardwareExp2::of(r[h] - risen[h]);
      r[h] = risen[h];
      l[h] *= keep[h];
      if (is_large_reference(r[h])) round_large_scores(s, h, c[h], 1.0F / c[h], r[h]);
    }
    const float below[2] = {subtracted_reference(r[0]), subtracted_reference(r[1])};
#pragma unroll
    for (int i = 0; i < scores; ++i) {
      s[i] = HardwareExp2::of(fmaf(s[i], c[i / 2 % 2], -below[i / 2 % 2]));
    }
    float sum[2] = {0.0F, 0.0F};
#pragma unroll
    for (int i = 0; i < scores; ++i) sum[i / 2 % 2] += s[i];
    l[0] += sum[0];
    l[1] += sum[1];
  }
};

}  // namespace attest
