#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// __half and __nv_bfloat16 with CUDA's names. Conversions round once, to nearest, ties to even;
// subnormals are kept. Arithmetic goes through fp32, whose 24 bits make the second rounding
// harmless for + - * / and sqrt (24 >= 2 p + 2).

namespace attest::simt {

/// Bits of the fp16 value nearest to x.
constexpr std::uint16_t half_bits(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U, magnitude = bits & 0x7fffffffU;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000U) {
    result = 0x7e00U | (magnitude >> 13 & 0x3ffU);  // NaN: payload kept as far as it fits
  } else if (magnitude >= 0x477ff000U) {
    result = 0x7c00U;                     // 65520 and more
  } else if (magnitude >= 0x38800000U) {  // normal: move the exponent bias from 127 to 15, then
                                          // round 13 bits away
    const std::uint32_t odd = magnitude >> 13 & 1U;
    result = (magnitude - 0x38000000U + 0xfffU + odd) >> 13;
  } else if (magnitude > 0x33000000U) {  // subnormal: above half of 2^-24
    const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
    const std::uint32_t shift = 126U - (magnitude >> 23);
    const std::uint32_t kept = significand >> shift, rest = significand << (32U - shift);
    result = kept + (rest > 0x80000000U || (rest == 0x80000000U && (kept & 1U) != 0));
  }
  return static_cast<std::uint16_t>(sign | result);
}

/// Value of an fp16 number's bits, exact.
constexpr float half_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112U) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

/// Bits of the bf16 value nearest to x.
constexpr std::uint16_t bfloat16_bits(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}
/// Value of a bf16 number's bits, exact.
constexpr float bfloat16_value(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// A 16-bit floating-point number: storage and conversions.
template <std::uint16_t (*to_bits)(float), float (*to_value)(std::uint16_t)>
struct SixteenBitFloat {
  std::uint16_t bits;

  SixteenBitFloat() = default;
  explicit(false) constexpr SixteenBitFloat(float x) : bits(to_bits(x)) {}
  constexpr operator float() const { return to_value(bits); }
  constexpr SixteenBitFloat& operator+=(float x) { return *this = to_value(bits) + x; }
  constexpr SixteenBitFloat& operator-=(float x) { return *this = to_value(bits) - x; }
  constexpr SixteenBitFloat& operator*=(float x) { return *this = to_value(bits) * x; }
};

}  // namespace attest::simt

using __half = attest::simt::SixteenBitFloat<attest::simt::half_bits, attest::simt::half_value>;
using __nv_bfloat16 =
    attest::simt::SixteenBitFloat<attest::simt::bfloat16_bits, attest::simt::bfloat16_value>;
using half = __half;

struct alignas(4) __half2 {
  __half x, y;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
using half2 = __half2;

constexpr __half __float2half(float x) {
  return x;
}
constexpr __half __float2half_rn(float x) {
  return x;
}
constexpr float __half2float(__half x) {
  return x;
}
constexpr __half2 __floats2half2_rn(float x, float y) {
  return {x, y};
}
constexpr __half2 __halves2half2(__half x, __half y) {
  return {x, y};
}
constexpr float __low2float(__half2 v) {
  return v.x;
}
constexpr float __high2float(__half2 v) {
  return v.y;
}
constexpr __nv_bfloat16 __float2bfloat16(float x) {
  return x;
}
constexpr __nv_bfloat16 __float2bfloat16_rn(float x) {
  return x;
}
constexpr float __bfloat162float(__nv_bfloat16 x) {
  return x;
}
constexpr __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {x, y};
}
constexpr float __low2float(__nv_bfloat162 v) {
  return v.x;
}
constexpr float __high2float(__nv_bfloat162 v) {
  return v.y;
}
