#pragma once

#include <numbers>

#include "core/attention/problem.hpp"
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

  /// x becomes P, y dS. Both are chosen to be 0 where the pair is not there, after the exponential
  /// and after the product: 2^(0 - LSE) of zeros past the end is infinite where LSE is below -88,
  /// and infinity times 0 is NaN.
  __device__ void weigh(float& x, float& y, float lse2, float delta, bool is_seen) const {
    float slope = 1.0F, exponent;
    if (cap_ == 0.0F) {
      exponent = fmaf(x, scale_, -lse2);
    } else {
      const float tanh = tanh_of(x * per_cap_);
      exponent = cap_ * tanh * std::numbers::log2e_v<float> - lse2;
      slope = 1.0F - tanh * tanh;
    }
    const float p = HardwareExp2::of(exponent);
    const float ds = p * (y - delta) * slope;
    x = is_seen ? p : 0.0F;
    y = is_seen ? ds : 0.0F;
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
