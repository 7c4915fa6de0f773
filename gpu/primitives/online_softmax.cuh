#pragma once

#include <cmath>

#include "gpu/primitives/natural_log.cuh"

namespace attest {

// The running state of a row is its maximum m, -inf before the first key, and l, the sum of
// exp(score - m) so far.

/// Library exponential: 2 ulp on the GPU, 1 ulp in glibc.
struct LibraryExp {
  static __device__ float of(float x) { return expf(x); }
};

/// Hardware exponential, one multiplication and one ex2: 2 + floor(|1.173 x|) ulp.
struct FastExp {
  static __device__ float of(float x) { return __expf(x); }
};

/// 2^x in one instruction: ex2.approx.ftz, 2 ulp, subnormal results become 0.
struct HardwareExp2 {
  static __device__ float of(float x) {
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return simt::hardware_exp2(x);
#endif
  }
};

/// Exponential of a number that was multiplied by log2(e) before: 2 ulp on the GPU, 1 ulp in glibc.
struct FoldedExp2 {
  static __device__ float of(float x) { return exp2f(x); }
};

/// exp(value - maximum) for value <= maximum: the weight of a score, and the factor that moves sums
/// from an old maximum (`value`) to a new one.
///
/// A maximum of -inf says that nothing was seen yet, and -inf minus -inf would be NaN. Then 0 is
/// subtracted instead: the factor becomes exp(-inf) = 0, right for sums that hold nothing. A NaN
/// value gives NaN whatever the maximum: fmaxf drops a NaN score, so this is where it enters the
/// sums, and it never leaves them.
template <typename Exp>
__device__ float exp_below(float value, float maximum) {
  return Exp::of(value - (maximum == -INFINITY ? 0.0F : maximum));
}

/// Divisor of a row's weighted sum. l = 0: no key, or only scores of -inf, which count as none; the
/// sum is then 0 and so is the quotient. NaN stays.
inline __device__ float divisor_of(float l) {
  return l == 0.0F ? 1.0F : l;
}

/// Natural logarithm of the sum of exp(score). -inf for a row without keys, NaN for a NaN sum.
/// Error: 1 ulp of the logarithm, and the addition's rounding.
inline __device__ float log_sum_exp(float m, float l) {
  return m + logf(l);
}

/// LSE for a maximum in units of log2, of scores times log2(e). With HardwareExp2 go kernels whose
/// bits the executor repeats, so the logarithm is ln_of(): ln_error.
inline __device__ float log_sum_exp2(float m, float l) {
  return m * 0.693147181F + ln_of(l);
}

/// FA1's update, O normalised after every tile [FA1 Alg. 1, lines 11-12]: the tile brings its own
/// maximum and sum, and both sides are moved to the common maximum. A later normalisation could not
/// undo a missing one.
struct NormalisedStep {
  float m, l;       ///< of the row, the tile included
  float keep, add;  ///< O <- (keep * O + add * tile's weighted sum of V) / l

  __device__ float apply(float o, float tile_sum) const {
    return (keep * o + add * tile_sum) / divisor_of(l);
  }
};

template <typename Exp>
__device__ NormalisedStep normalised_step(float m, float l, float tile_m, float tile_l) {
  const float m_new = fmaxf(m, tile_m);
  const float keep = exp_below<Exp>(m, m_new) * l;
  const float add = exp_below<Exp>(tile_m, m_new);
  return {m_new, keep + add * tile_l, keep, add};
}

}  // namespace attest
