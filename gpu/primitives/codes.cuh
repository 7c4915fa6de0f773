#pragma once

#include <type_traits>

#include "core/attention/codes.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/mma.cuh"

#ifndef __CUDACC__
#include <cmath>
#include <cstring>
#endif

namespace attest {

// Codes of 8 bits as numbers of 16. Every number of e4m3 and of int8 is one of fp16 and of bf16, so
// nothing is rounded. As bf16 the two NaN codes of e4m3, which no rounding gives, are taken for
// 480: one shift and one product would have to become five instructions.

/// Four codes, the first in the lowest byte, as two registers of a fragment of T: codes 0 and 1,
/// codes 2 and 3, the lower one in the lower half.
template <typename T, Code code>
__device__ __forceinline__ void numbers_of_codes(unsigned four, unsigned& low, unsigned& high) {
  constexpr bool is_half = std::is_same_v<T, __half>;
  static_assert(is_half || std::is_same_v<T, __nv_bfloat16>);
  static_assert(code == Code::e4m3 || code == Code::int8);
#ifdef __CUDACC__
  if constexpr (code == Code::e4m3 && is_half) {
#if __CUDA_ARCH__ >= 890
    asm("{\n.reg .b16 first, second;\nmov.b32 {first, second}, %2;\n"
        "cvt.rn.f16x2.e4m3x2 %0, first;\ncvt.rn.f16x2.e4m3x2 %1, second;\n}"
        : "=r"(low), "=r"(high)
        : "r"(four));
#else
    const auto number = [](unsigned shifted) {  // exponents are 8 too low
      const unsigned bits = (shifted & 0x80008000U) | (shifted >> 1 & 0x3f803f80U);
      unsigned result;
      asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(bits), "r"(0x5c005c00U));
      return result;
    };
    low = number(__byte_perm(four, 0, 0x1404));
    high = number(__byte_perm(four, 0, 0x3424));
#endif
  } else if constexpr (code == Code::e4m3) {
    const auto number = [](unsigned shifted) {  // exponents are 120 too low
      const unsigned bits = (shifted & 0x80008000U) | (shifted >> 4 & 0x07f007f0U);
      unsigned result;
      asm("fma.rn.bf16x2 %0, %1, %2, %3;"
          : "=r"(result)
          : "r"(bits), "r"(0x7b807b80U), "r"(0x80008000U));
      return result;
    };
    low = number(__byte_perm(four, 0, 0x1404));
    high = number(__byte_perm(four, 0, 0x3424));
  } else if constexpr (is_half) {
    const auto number = [](unsigned biased) {  // 1024 + 128 + the number
      unsigned result;
      asm("sub.f16x2 %0, %1, %2;" : "=r"(result) : "r"(biased), "r"(0x64806480U));
      return result;
    };
    const unsigned offset = four ^ 0x80808080U;
    low = number(__byte_perm(offset, 0x64646464U, 0x4140));
    high = number(__byte_perm(offset, 0x64646464U, 0x4342));
  } else {
    const auto number = [](unsigned both) {  // (128 + the lower bits) - (128 + what the sign takes)
      const unsigned bits = both & 0xff7fff7fU, sign = (both & 0xff80ff80U) | 0x80008000U;
      unsigned result;
      asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(bits), "r"(0x3f803f80U), "r"(sign));
      return result;
    };
    low = number(__byte_perm(four, 0x43434343U, 0x4140));
    high = number(__byte_perm(four, 0x43434343U, 0x4342));
  }
#else
  const auto number = [](unsigned bits) {
    const float value = decode(format_with(code, ElementType::fp32), bits);
    if (is_half || value == value) return T(value);
    return T(std::copysign(480.0F, (bits & 0x80U) != 0 ? -1.0F : 1.0F));
  };
  const T numbers[4] = {number(four & 0xffU), number(four >> 8 & 0xffU), number(four >> 16 & 0xffU),
                        number(four >> 24)};
  std::memcpy(&low, numbers, sizeof low);
  std::memcpy(&high, numbers + 2, sizeof high);
#endif
}

/// Numbers of codes 0 and 2, and of codes 1 and 3, otherwise as above.
template <typename T, Code code>
__device__ __forceinline__ void numbers_of_alternate_codes(unsigned four, unsigned& even,
                                                           unsigned& odd) {
#ifdef __CUDACC__
  const unsigned sorted = __byte_perm(four, 0, 0x3120);
#else
  const unsigned sorted = (four & 0xff0000ffU) | (four >> 8 & 0xff00U) | (four << 8 & 0xff0000U);
#endif
  numbers_of_codes<T, code>(sorted, even, odd);
}

}  // namespace attest
