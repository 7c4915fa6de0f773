#pragma once

#include "gpu/kernels/fa2_mma/softmax.cuh"
#include "gpu/kernels/lagging_softmax.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// Fa2Softmax's references, of a warp's 16 rows whose scores lie in a wgmma accumulator: a row's is
/// raised, to its largest score, where that lies more than reference_lag above it.
struct PrefixSoftmax : LaggingRows<WeightSums::at_once> {
  bool has_large = false;  ///< a large reference in some row of the warp

  /// Scores become weights, l adds them before they are rounded. True where O must be multiplied by
  /// keep. All lanes of the warp call it.
  template <int scores>
  __device__ __forceinline__ bool weigh(float (&s)[scores], float c) {
    const float largest[2] = {largest_score(s, 0) * c, largest_score(s, 1) * c};
    const bool has_risen = largest[0] > r[0] + reference_lag || largest[1] > r[1] + reference_lag;
    const bool rescales = __any_sync(0xffffffffU, has_risen);
    if (rescales) raise(largest);
    if (has_large) round_large(s, c);
    add(s, c);
    return rescales;
  }

 private:
  __device__ __forceinline__ void raise(const float (&largest)[2]) {
    bool is_large = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float top = row_max(largest[h]);
      const float risen = top > r[h] + reference_lag ? top : r[h];
      keep[h] = risen == r[h] ? 1.0F : HardwareExp2::of(r[h] - risen);
      r[h] = risen;
      l[h] *= keep[h];
      is_large |= is_large_reference(risen);
    }
    has_large = __any_sync(0xffffffffU, is_large);
  }
};

}  // namespace attest
