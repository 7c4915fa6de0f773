#pragma once

#include <cmath>

#include "gpu/kernels/fp32_wgmma/scaling.cuh"
#include "gpu/kernels/row_fragment.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// Online softmax of a lane's rows g and g + 8 of a warp. S is [64, Bc] as wgmma leaves it.
///
/// Weights are 2^(c s - r), r the running maximum of c s less `lead`: they are up to 2^lead, which
/// keeps fp16 parts away from the bottom of their range.
template <typename Shape>
struct SplitSoftmax {
  static constexpr int columns = Shape::Bc / 8;
  static constexpr bool is_scaled = Shape::Parts::is_scaled;
  static constexpr float lead = is_scaled ? weight_lead : 0;

  float r[2] = {-INFINITY, -INFINITY};
  float l[2] = {0.0F, 0.0F};  ///< of this lane's keys
  float keep[2];              ///< by which weigh() wants earlier sums multiplied

  /// c s, rounded by itself, so that the largest score cancels to 0 however large it is. Before any
  /// is hidden, as c may be 0.
  static __device__ __forceinline__ void multiply(float (&s)[Shape::Bc / 2], float c) {
#pragma unroll
    for (int i = 0; i < Shape::Bc / 2; ++i) s[i] *= c;
  }

  /// Hides keys of a tile that begins at the lane's first key + `past`.
  static __device__ __forceinline__ void hide(float (&s)[Shape::Bc / 2], const int (&past)[2]) {
    hide_scores(s, past);
  }

  /// s becomes the weights. c: what to multiply s by, of each row and 64 keys.
  __device__ __forceinline__ void weigh(float (&s)[Shape::Bc / 2],
                                        const float (&c)[2][Shape::Bc / 64]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = -INFINITY;
#pragma unroll
      for (int b = 0; b < Shape::Bc / 64; ++b) {
        const int first = 32 * b + 2 * h;
        float even = s[first], odd = s[first + 1];
#pragma unroll
        for (int j = 1; j < 8; ++j) {
          even = fmaxf(even, s[first + 4 * j]);
          odd = fmaxf(odd, s[first + 4 * j + 1]);
        }
        top = fmaxf(top, fmaxf(even, odd) * c[h][b]);
      }
      top = row_max(top);
      const float risen = fmaxf(r[h], top - lead);
      const float below = risen == -INFINITY ? 0.0F : risen;
      keep[h] = HardwareExp2::of(r[h] - below);
      r[h] = risen;
      float sum_even = 0.0F, sum_odd = 0.0F;
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        float& even = s[4 * j + 2 * h];
        float& odd = s[4 * j + 2 * h + 1];
        even = HardwareExp2::of(fmaf(even, c[h][j / 8], -below));
        odd = HardwareExp2::of(fmaf(odd, c[h][j / 8], -below));
        sum_even += even;
        sum_odd += odd;
      }
      l[h] = fmaf(l[h], keep[h], sum_even + sum_odd);
    }
  }
};

}  // namespace attest
