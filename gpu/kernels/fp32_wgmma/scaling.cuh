#pragma once

namespace attest {

// How numbers are scaled before they become fp16 parts. A part holds nothing below 2^-25, so the
// largest of a group of numbers is brought to 2^e; what fp16 has above, up to 2^16, is room for
// keys that follow.

inline constexpr int query_exponent = 13;  ///< a row's own largest element
inline constexpr int key_exponent = 10;    ///< the largest of the first of 64 keys that is not 0
inline constexpr int value_exponent =
    8;                                 ///< the largest of the first of 64 rows of V that is not 0
inline constexpr int weight_lead = 8;  ///< weights are up to 2^8

/// Rows whose largest element lies outside have no fp16 parts: products of the powers stay far from
/// fp32's limits.
inline constexpr float least_size = 0x1p-40F, largest_size = 0x1p40F;
/// Largest change of a score by the last bits of fp16 parts, in natural units. Rows for which it
/// could be more have no fp16 parts.
inline constexpr float allowed_score_error = 0x1p-22F;

// Two fp16 parts hold 22 or 23 bits, and O shows it where few weights count: fp32 arithmetic has
// next to no error there. Such rows are for the bf16 parts, too.

/// Rows that see some keys, but no more.
inline constexpr int few_keys = 128;
/// Rows whose sum of weights is less than this much above the largest, relative to it.
inline constexpr float one_key_share = 0x1p-7F;

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
/// Reciprocal of a power of two, exact.
__device__ inline float inverse_power(float x) {
  return __uint_as_float((254U << 23) - __float_as_uint(x));
}

}  // namespace attest
