#pragma once

#include <cfloat>

#include "gpu/kernels/row_fragment.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// When weights are added up: each as it is formed, or all after the last. Bits are the same, the
/// order of machine instructions is not.
enum class WeightSums { at_once, afterwards };

/// Scores of a warp's 16 rows become weights 2^(c s - below); `sum` is that of this lane's keys.
template <WeightSums when, int scores>
__device__ __forceinline__ void weigh_below(float (&s)[scores], float c, const float (&below)[2],
                                            float (&sum)[2]) {
  sum[0] = sum[1] = 0.0F;
#pragma unroll
  for (int i = 0; i < scores; ++i) {
    s[i] = HardwareExp2::of(fmaf(s[i], c, -below[i / 2 % 2]));
    if constexpr (when == WeightSums::at_once) sum[i / 2 % 2] += s[i];
  }
  if constexpr (when == WeightSums::afterwards) {
#pragma unroll
    for (int i = 0; i < scores; ++i) sum[i / 2 % 2] += s[i];
  }
}

/// A warp's 16 rows under references that lag, scores in a wgmma accumulator (row_fragment.cuh):
/// what the softmaxes of fa3_wgmma, mla_wgmma and the shared chunks of decode_mma have in common.
///
/// Weights of a row are 2^(c s - r). Its reference r may stay below its largest c s so far, by as
/// much as the kernel allows, so that hardly a tile has to rescale O. When a larger one is looked
/// for is the kernel's own.
template <WeightSums when>
struct LaggingRows {
  float r[2] = {-FLT_MAX, -FLT_MAX};
  float l[2] = {0.0F, 0.0F};  ///< of this lane's keys
  float keep[2];              ///< what O must be multiplied by when a call says so

 protected:
  /// Rows get the references `risen`. True where one of the warp's is new, and O must be rescaled.
  __device__ __forceinline__ bool move_to(const float (&risen)[2]) {
    const bool moves = !(risen[0] == r[0] && risen[1] == r[1]);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      keep[h] = risen[h] == r[h] ? 1.0F : HardwareExp2::of(r[h] - risen[h]);
      r[h] = risen[h];
      l[h] *= keep[h];
    }
    return __any_sync(0xffffffffU, moves);
  }

  /// Scores of rows whose references are large become what add() takes.
  template <int scores>
  __device__ __forceinline__ void round_large(float (&s)[scores], float c) const {
    const float per_c = 1.0F / c;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (is_large_reference(r[h])) round_large_scores(s, h, c, per_c, r[h]);
    }
  }

  /// Scores become weights, l adds them before they are rounded.
  template <int scores>
  __device__ __forceinline__ void add(float (&s)[scores], float c) {
    const float below[2] = {subtracted_reference(r[0]), subtracted_reference(r[1])};
    float sum[2];
    weigh_below<when>(s, c, below, sum);
    l[0] += sum[0];
    l[1] += sum[1];
  }
};

}  // namespace attest
