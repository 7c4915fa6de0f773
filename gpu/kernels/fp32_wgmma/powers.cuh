#pragma once

namespace attest {

// Powers of two by their bits; all arguments and results are normal numbers.

/// 2^n.
__device__ constexpr float power_of(int n) {
  return n < 0 ? power_of(n + 1) / 2 : n > 0 ? power_of(n - 1) * 2 : 1.0F;
}
/// 2^(n - e) for x in [2^e, 2^(e + 1)).
__device__ inline float power_to(int n, float x) {
  return __uint_as_float((static_cast<unsigned>(254 + n) << 23) -
                         (__float_as_uint(x) & 0x7f800000U));
}
/// 1 / x of a power of two.
__device__ inline float inverse_power(float x) {
  return __uint_as_float((254U << 23) - __float_as_uint(x));
}

}  // namespace attest
