#pragma once

#include <numbers>

#include "core/attention/problem.hpp"
#include "gpu/kernels/bwd_simple/modifications.cuh"
#include "gpu/kernels/row_fragment.cuh"
#include "gpu/primitives/softcap.cuh"

namespace attest {

/// P and dS of a pair from x = q.k and y = dO.v (core/operations/backward.hpp). dS without the
/// scale, which dQ and dK get at the end.
class PairWeigher {
 public:
  __device__ explicit PairWeigher(const Problem& problem)
      : scale_(problem.scale * std::numbers::log2e_v<float>),
        cap_(problem.softcap),
        per_cap_(cap_ == 0.0F ? 0.0F : problem.scale / cap_) {}

  /// x becomes P, as dropout leaves it, y dS. Both are chosen to be 0 where the pair is not there,
  /// after the exponential and after the product: 2^(0 - LSE) of zeros past the end is infinite
  /// where LSE is below -88, and infinity times 0 is NaN. The result is what the pair adds to the
  /// gradient of its bias: dS as it is before the slope of the softcap.
  __device__ float weigh(float& x, float& y, const BwdPair& pair) const {
    float slope = 1.0F, exponent;
    if (cap_ == 0.0F) {
      exponent = fmaf(x, scale_, pair.shift);
    } else {
      const float tanh = tanh_of(x * per_cap_);
      exponent = cap_ * tanh * std::numbers::log2e_v<float> + pair.shift;
      slope = 1.0F - tanh * tanh;
    }
    const float p = HardwareExp2::of(exponent);
    const float of_bias = p * (pair.kept * y - pair.delta);
    x = pair.is_seen ? p * pair.kept : 0.0F;
    y = pair.is_seen ? of_bias * slope : 0.0F;
    return pair.is_seen ? of_bias : 0.0F;
  }

 private:
  float scale_, cap_, per_cap_;
};

/// Calls visit(x, y, row, column) for a lane's elements of two fragments, the row being h of
/// row_fragment.cuh.
template <typename Fragment, typename Visit>
__device__ __forceinline__ void for_each_pair(Fragment& x, Fragment& y, const Visit& visit) {
#pragma unroll
  for (int j = 0; j < column_groups<Fragment>; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        visit(element(x, j, h, e), element(y, j, h, e), h,
              8 * j + static_cast<int>(threadIdx.x) % 4 * 2 + e);
      }
    }
  }
}

}  // namespace attest
