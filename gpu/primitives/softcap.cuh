#pragma once

#include "gpu/primitives/elementary_error.hpp"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// 1 / x for x in [1, 2], within 1 ulp and exactly 1 for 1: the polynomial of degree 2 that is
/// right to 1/99, and two of Newton's steps, each squaring that. Nothing but FMAs: the bits are the
/// same everywhere.
inline __device__ float reciprocal_from_one_to_two(float x) {
  float r = fmaf(fmaf(0.32323232F, x, -1.45454545F), x, 2.12121212F);
  r = fmaf(r, fmaf(-x, r, 1.0F), r);
  return fmaf(r, fmaf(-x, r, 1.0F), r);
}

/// tanh of any number, infinities among them; NaN stays. tanh_of(-y) = -tanh_of(y), tanh_of(0) = 0,
/// never above 1. Error: tanh_error. Written in operations that the executor repeats bit for bit,
/// unlike tanhf.
///
/// Up to 0.55 an odd polynomial (minimax in the relative error, 0.62 * 2^-24); above, with
/// e = exp(-2 |y|), (1 - e) / (1 + e).
inline __device__ float tanh_of(float y) {
  const float size = fabsf(y);
  if (size < 0.55F) {
    const float z = y * y;
    float p = fmaf(0.01643755F, z, -0.05267179545F);
    p = fmaf(p, z, 0.1332072475F);
    p = fmaf(p, z, -0.3333294662F);
    return copysignf(fmaf(size * z, p, size), y);
  }
  const float e = HardwareExp2::of(size * -2.88539008177792681F);  // -2 log2(e)
  return copysignf((1.0F - e) * reciprocal_from_one_to_two(1.0F + e), y);
}

/// cap * tanh(x / cap), for x = score and per_score = 1 / cap; or, to save the product that forms
/// the score, for x = dot and per_score = scale / cap.
inline __device__ float softcapped(float x, float per_score, float cap) {
  return cap * tanh_of(x * per_score);
}

}  // namespace attest
