#pragma once

#include <cfloat>

#include "gpu/kernels/row_fragment.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// A weight may be up to 2^this: so much below its row's largest score a reference may lie.
inline constexpr int mla_reference_lag = 8;

/// Online softmax of a warp's 16 rows, whose key tiles two warpgroups take in turn: each weighs
/// every other tile, and takes over the reference that the other one left. Weights are 2^(c s - r).
/// A reference is raised, to the largest score, where that lies more than the lag above it: then,
/// and only then, is O rescaled. No row's bits hang on its neighbours.
struct MlaSoftmax {
  float r[2] = {-FLT_MAX, -FLT_MAX};
  float l[2] = {0.0F, 0.0F};     ///< of this lane's keys of this group's tiles
  float keep[2] = {1.0F, 1.0F};  ///< what O must be multiplied by when a call says so

  /// Takes over references that were raised elsewhere. True where O must be rescaled by keep.
  __device__ __forceinline__ bool follow(float upper, float lower) {
    const float risen[2] = {upper, lower};
    return move_to(risen);
  }

  /// Scores become weights, l adds them before they are rounded. True where O must be rescaled by
  /// keep.
  template <int scores>
  __device__ __forceinline__ bool weigh(float (&s)[scores], float c) {
    float risen[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float top = row_max(largest_score(s, h)) * c;
      risen[h] = top > r[h] + mla_reference_lag ? top : r[h];
    }
    const bool rescales = move_to(risen);
    if (__any_sync(0xffffffffU, is_large_reference(r[0]) || is_large_reference(r[1]))) {
      const float per_c = 1.0F / c;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (is_large_reference(r[h])) round_large_scores(s, h, c, per_c, r[h]);
      }
    }
    const float below[2] = {subtracted_reference(r[0]), subtracted_reference(r[1])};
#pragma unroll
    for (int i = 0; i < scores; ++i) s[i] = HardwareExp2::of(fmaf(s[i], c, -below[i / 2 % 2]));
    float sum[2] = {0.0F, 0.0F};
#pragma unroll
    for (int i = 0; i < scores; ++i) sum[i / 2 % 2] += s[i];
    l[0] += sum[0];
    l[1] += sum[1];
    return rescales;
  }

 private:
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
};

}  // namespace attest
