#pragma once

#include "gpu/kernels/lagging_softmax.cuh"

namespace attest {

/// A weight may be up to 2^this: so much below its row's largest score a reference may lie.
inline constexpr int mla_reference_lag = 8;

/// Online softmax of a warp's 16 rows, whose key tiles two warpgroups take in turn: each weighs
/// every other tile, and takes over the reference that the other one left. Weights are 2^(c s - r).
/// A reference is raised, to the largest score, where that lies more than the lag above it: then,
/// and only then, is O rescaled. No row's bits hang on its neighbours.
struct MlaSoftmax : LaggingRows<WeightSums::afterwards> {
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
      round_large(s, c);
    }
    add(s, c);
    return rescales;
  }
};

}  // namespace attest
