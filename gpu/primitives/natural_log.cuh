#pragma once

#include <cmath>

#include "gpu/primitives/elementary_error.hpp"

namespace attest {

/// Natural logarithm of x >= 0; -inf of 0; infinity and NaN stay. Error: ln_error. Written in
/// operations that the executor repeats bit for bit, unlike logf.
///
/// x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f), h = f^2 / 2:
///   ln(1 + f) = 2 atanh(s) = f - h + s (h + w (2/3 + 2/5 w + 2/7 w^2 + 2/9 w^3 + ...)),  w = s^2.
/// f is exact and the rest is small beside it; w < 0.0295 makes the series' tail 2^-28 of
/// the whole.
inline __device__ float ln_of(float x) {
  if (!(x > 0.0F && x < INFINITY)) return x == 0.0F ? -INFINITY : x;
  const bool is_subnormal = x < 0x1p-126F;
  const unsigned bits = __float_as_uint(is_subnormal ? x * 0x1p24F : x);
  const unsigned above = bits - 0x3f3504f3U;  // past sqrt(1/2)
  const int exponent = static_cast<int>(above) >> 23;
  const float f = __uint_as_float(bits - (static_cast<unsigned>(exponent) << 23)) - 1.0F;
  const auto e = static_cast<float>(exponent - (is_subnormal ? 24 : 0));

  const float s = f / (2.0F + f), w = s * s, h = 0.5F * f * f;
  float series = fmaf(0.222222222F, w, 0.285714286F);
  series = fmaf(series, w, 0.4F);
  series = fmaf(series, w, 0.666666667F);
  const float small = s * fmaf(series, w, h);
  // ln 2 in two parts: e times the first is exact.
  const float low = fmaf(e, 1.42860682e-06F, small);
  return fmaf(e, 0.693145752F, f - (h - low));
}

}  // namespace attest
