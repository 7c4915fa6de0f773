#include "gpu/simt/cuda_half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/attention/element_type.hpp"

namespace attest {
namespace {

/// All upper halves of an fp32 pattern with the lower halves at which a rounding can tip.
template <typename Visit>
void for_each_float(Visit visit) {
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper)
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x0fffU, 0x1000U, 0x1001U, 0x2000U, 0x3000U,
                                      0x7fffU, 0x8000U, 0x8001U, 0xf000U, 0xffffU})
      visit(std::bit_cast<float>(upper << 16 | lower));
}

TEST(SixteenBitFloats, everyPatternDecodesAsInCoreAndEncodesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const float half = simt::half_value(pattern), bfloat = simt::bfloat16_value(pattern);
    const float want_half = decode(ElementType::fp16, bits);
    const float want_bfloat = decode(ElementType::bf16, bits);
    ASSERT_TRUE(half == want_half || (std::isnan(half) && std::isnan(want_half))) << bits;
    ASSERT_TRUE(bfloat == want_bfloat || (std::isnan(bfloat) && std::isnan(want_bfloat))) << bits;
    if (!std::isnan(half)) {
      ASSERT_EQ(simt::half_bits(half), bits);
    }
    if (!std::isnan(bfloat)) {
      ASSERT_EQ(simt::bfloat16_bits(bfloat), bits);
    }
  }
}

TEST(SixteenBitFloats, roundToTheSameValueAsCore) {
  for_each_float([](float x) {
    const float half = static_cast<__half>(x), bfloat = static_cast<__nv_bfloat16>(x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(half) && std::isnan(bfloat));
      return;
    }
    ASSERT_EQ(half, static_cast<float>(round_to(ElementType::fp16, x))) << x;
    ASSERT_EQ(bfloat, static_cast<float>(round_to(ElementType::bf16, x))) << x;
    ASSERT_EQ(std::signbit(half), std::signbit(x));
    ASSERT_EQ(std::signbit(bfloat), std::signbit(x));
  });
}

}  // namespace
}  // namespace attest
