#pragma once

#include <bit>
#include <cmath>

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

/// A positive number that many are divided by.
class ScaleDivisor {
 public:
  ATTEST_HOST_DEVICE explicit ScaleDivisor(float scale = 1)
      : scale_(scale),
        reciprocal_(1.0F / scale),
        is_plain_(scale >= 0x1p-60F && scale <= 0x1p60F) {}

  [[nodiscard]] ATTEST_HOST_DEVICE bool is_plain() const { return is_plain_; }

  /// fl(x / scale), or, where that is below 2^-39, a number below 2^-38 with x's sign, which every
  /// code rounds to 0. Three residuals instead of the dozen instructions of a division: the
  /// reciprocal is correctly rounded, the second quotient within an ulp, and so the third one is
  /// correctly rounded [Markstein, IBM J. Res. Dev. 34(1), 1990]. A residual is exact from |x| =
  /// 2^-100 on. They are of quotient * scale - x, so that of -0 is +0, and -0 stays.
  [[nodiscard]] ATTEST_HOST_DEVICE float quotient(float x) const {
    if (!is_plain_) return x / scale_;
    const float first = x * reciprocal_;
    const float second = fused(-fused(first, scale_, -x), reciprocal_, first);
    const float third = fused(-fused(second, scale_, -x), reciprocal_, second);
    return std::fabs(x) <= 0x1.fffffep127F ? third : x;  // an infinity, or a NaN, as it is
  }

 private:
  float scale_, reciprocal_;
  bool is_plain_;
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
  if (x != x) return 0;
  const float within = x < -127.0F ? -127.0F : x > 127.0F ? 127.0F : x;
  return bits_of(within + 0x1.8p23F) & 0xffU;
}

/// Codes of two numbers, the first one's in the low byte. `code` is none of Code::none.
ATTEST_HOST_DEVICE inline unsigned pair_of_codes(Code code, float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  if (code == Code::e4m3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    return pair;
  }
  if (code == Code::e5m2) {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    return pair;
  }
#else
  if (code == Code::e4m3) return small_float_code<3>(first) | small_float_code<3>(second) << 8U;
  if (code == Code::e5m2) return small_float_code<2>(first) | small_float_code<2>(second) << 8U;
#endif
  return int8_code(first) | int8_code(second) << 8U;
}

}  // namespace attest
