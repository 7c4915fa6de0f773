#pragma once

#include <cmath>

namespace attest {

/// Library exponential: 2 ulp on the GPU, 1 ulp in glibc.
struct LibraryExp {
  static __device__ float of(float x) { return expf(x); }
};

/// Hardware exponential, one multiplication and one ex2: 2 + floor(|1.173 x|) ulp.
struct FastExp {
  static __device__ float of(float x) { return __expf(x); }
};

/// exp(value - maximum) for value <= maximum: the weight of a score under a running maximum, and
/// the factor that moves sums from an old maximum (`value`) to a new one.
///
/// A maximum of -inf says that nothing finite was seen, and -inf minus -inf would be NaN. Then 0 is
/// subtracted instead, so that a factor becomes exp(-inf) = 0, which is right for sums that hold
/// nothing. A NaN value gives NaN whatever the maximum: fmaxf drops a NaN score, so this is where
/// it enters the sums, and it never leaves them.
template <typename Exp>
__device__ float exp_below(float value, float maximum) {
  return Exp::of(value - (maximum == -INFINITY ? 0.0F : maximum));
}

/// ln(sum of exp(score)) from the running maximum and the sum of weights under it. A row without
/// keys has maximum -inf and sum 0, and gives -inf; a NaN sum gives NaN. Error: 1 ulp of the
/// logarithm, and the addition's rounding.
inline __device__ float log_sum_exp(float maximum, float sum) {
  return maximum + logf(sum);
}

}  // namespace attest
