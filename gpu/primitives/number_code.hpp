#pragma once

#include <bit>
#include <cmath>
#include <type_traits>

#include "core/attention/codes.hpp"
#include "core/base/host_device.hpp"

// Numbers to codes of 8 bits, to the last bit of the quantiser's definition
// (core/operations/quantise.hpp), in operations that a GPU and a CPU perform alike.
namespace attest {

ATTEST_HOST_DEVICE inline unsigned bits_of(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  return std::bit_cast<unsigned>(x);
#endif
}

ATTEST_HOST_DEVICE inline float fused(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}

/// The scale of numbers of which none is larger than 2^17 times it, and by which they are divided.
class ScaleDivisor {
 public:
  ATTEST_HOST_DEVICE explicit ScaleDivisor(float scale = 1)
      : factor_(scale < 0x1p-60F  ? 0x1p80F
                : scale > 0x1p60F ? 0x1p-80F
                                  : 1.0F),
        scale_(scale * factor_),
        reciprocal_(1.0F / scale_) {}

  /// Quotient fl(x / scale), or, where that is below 2^-39, a number below 2^-38 with x's sign,
  /// which every code rounds to 0. Two residuals instead of the dozen instructions of a division:
  /// the reciprocal is correctly rounded, the second quotient within an ulp, and so the third one
  /// is correctly rounded [Markstein, IBM J. Res. Dev. 34(1), 1990], as residuals are exact for |x|
  /// from 2^-100 on. They are of quotient * scale - x, so that of -0 is +0, and -0 stays. Scales
  /// far from 1, subnormal ones among them, are moved to the middle with their numbers, exactly.
  [[nodiscard]] ATTEST_HOST_DEVICE float quotient(float x) const {
    const float moved = x * factor_;
    const float first = moved * reciprocal_;
    const float second = fused(-fused(first, scale_, -moved), reciprocal_, first);
    const float third = fused(-fused(second, scale_, -moved), reciprocal_, second);
    return std::fabs(x) <= 0x1.fffffep127F ? third : x;  // an infinity, or a NaN, as it is
  }

 private:
  float factor_, scale_, reciprocal_;
};

/// Code nearest to a number, ties to even, in a format with so many bits of fraction, whose largest
/// number has the code `largest_code`: e4m3 or e5m2. NaN is 0x7f.
template <int fraction_bits>
ATTEST_HOST_DEVICE unsigned small_float_code(float x) {
  constexpr int exponent_bits = 7 - fraction_bits, shift = 23 - fraction_bits;
  constexpr unsigned bias = (1U << (exponent_bits - 1)) - 1;
  // The last code of e4m3 is NaN, the last four magnitudes of e5m2 are no numbers.
  constexpr unsigned largest_code = fraction_bits == 3 ? 0x7eU : 0x7bU;
  constexpr unsigned rebias = (127U - bias) << 23U;
  constexpr unsigned smallest_normal = rebias + (1U << 23U);
  constexpr unsigned largest = (largest_code << shift) + rebias;
  // 1.5 times 2^23 of the format's least steps: adding it rounds to one of them.
  constexpr float steps = fraction_bits == 3 ? 0x1.8p14F : 0x1.8p7F;
  const unsigned bits = bits_of(x), magnitude = bits & 0x7fffffffU, sign = bits >> 24U & 0x80U;
  if (magnitude > 0x7f800000U) return 0x7fU;
  if (magnitude >= largest) return sign | largest_code;
  if (magnitude < smallest_normal) return sign | (bits_of(std::fabs(x) + steps) & 0x1fU);
  const unsigned odd = magnitude >> shift & 1U;
  return sign | (magnitude - rebias + (1U << (shift - 1)) - 1 + odd) >> shift;
}

/// Nearest of -127 to 127, ties to even, as the low 8 bits. NaN is 0.
ATTEST_HOST_DEVICE inline unsigned int8_code(float x) {
#ifdef __CUDA_ARCH__
  return static_cast<unsigned>(max(-127, min(127, __float2int_rn(x)))) & 0xffU;
#else
  if (x != x) return 0;
  const float within = x < -127.0F ? -127.0F : x > 127.0F ? 127.0F : x;
  return bits_of(within + 0x1.8p23F) & 0xffU;
#endif
}

/// Codes of two numbers, the first one's in the low byte.
template <Code code>
ATTEST_HOST_DEVICE unsigned pair_of_codes(float first, float second) {
  static_assert(code != Code::none);
  if constexpr (code == Code::int8) {
    return int8_code(first) | int8_code(second) << 8U;
  } else {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    unsigned short pair;
    if constexpr (code == Code::e4m3) {
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    } else {
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    }
    return pair;
#else
    constexpr int fraction_bits = code == Code::e4m3 ? 3 : 2;
    return small_float_code<fraction_bits>(first) | small_float_code<fraction_bits>(second) << 8U;
#endif
  }
}

/// with_code: visit(std::integral_constant<Code, code>), for kernels that know it when they are
/// compiled. `code` is none of Code::none.
template <typename Visit>
ATTEST_HOST_DEVICE void with_code(Code code, const Visit& visit) {
  if (code == Code::e4m3) return visit(std::integral_constant<Code, Code::e4m3>{});
  if (code == Code::e5m2) return visit(std::integral_constant<Code, Code::e5m2>{});
  visit(std::integral_constant<Code, Code::int8>{});
}

}  // namespace attest
