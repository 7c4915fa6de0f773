#include "core/attention/element_type.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/attention/problem.hpp"
#include "core/base/error.hpp"
#include "core/inputs/random.hpp"

namespace attest {
namespace {

TEST(ElementType, TheFormatsHaveTheirPublishedNumbers) {
  EXPECT_EQ(format_of(ElementType::fp32).max_finite, std::numeric_limits<float>::max());
  EXPECT_EQ(format_of(ElementType::fp32).min_normal, std::numeric_limits<float>::min());
  EXPECT_EQ(format_of(ElementType::fp32).min_subnormal, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(format_of(ElementType::fp16).max_finite, 65504.0);
  EXPECT_EQ(format_of(ElementType::fp16).min_subnormal, 0x1p-24);
  EXPECT_EQ(format_of(ElementType::bf16).unit_roundoff, 0x1p-8);
  EXPECT_EQ(format_of(ElementType::bf16).max_finite, 0x1.fep127);
}

TEST(ElementType, RoundingToFp32IsTheProcessorsOwn) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double value = std::bit_cast<double>(random_bits(1, 2, i));
    if (!std::isfinite(value)) continue;
    const auto want = static_cast<double>(static_cast<float>(value));
    EXPECT_EQ(round_to(ElementType::fp32, value), want) << value;
  }
}

// _Float16 is the compiler's own fp16: an independent definition of the format.
TEST(ElementType, RoundingAndBitsOfFp16AreTheCompilersOwn) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto want = static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
    const float got = decode(ElementType::fp16, bits);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
      continue;
    }
    EXPECT_EQ(got, want) << bits;
    EXPECT_EQ(encode(ElementType::fp16, want), bits);
  }
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double value =
        std::ldexp(random_normal(3, 0, i), static_cast<int>(random_below(3, 1, i, 48)) - 30);
    EXPECT_EQ(round_to(ElementType::fp16, value), static_cast<double>(static_cast<_Float16>(value)))
        << value;
  }
}

TEST(ElementType, EveryBf16ValueSurvivesDecodeRoundAndEncode) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = decode(ElementType::bf16, bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(decode(ElementType::bf16, encode(ElementType::bf16, value))));
      continue;
    }
    EXPECT_EQ(round_to(ElementType::bf16, value), value);
    EXPECT_EQ(encode(ElementType::bf16, value), bits);
  }
}

// What a row of the table promises, of whatever formats the table has.
TEST(ElementType, EveryFormatSurvivesItsNameItsCodesAndTheTextOfAProblem) {
  for (const ElementType type : all_element_types()) {
    const ElementFormat& format = format_of(type);
    EXPECT_EQ(element_type_from_name(format.name), type);
    const Problem problem{.element_type = type};
    EXPECT_EQ(problem_from_string(to_string(problem)).element_type, type) << to_string(problem);

    const std::size_t bits = 8 * format.size_bytes;
    const std::uint64_t codes = std::uint64_t{1} << std::min<std::size_t>(bits, 16);
    for (std::uint64_t i = 0; i < codes; ++i) {
      // All codes of up to 16 bits; of more bits those of the upper half with drawn lower halves.
      const std::uint64_t low = bits > 16 ? random_below(7, 0, i, codes) << (bits - 32) : 0;
      const auto code = static_cast<std::uint32_t>(bits > 16 ? i << (bits - 16) | low : i);
      const float value = decode(type, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(type, encode(type, value)))) << format.name << ' ' << code;
        continue;
      }
      EXPECT_EQ(encode(type, value), code) << format.name;
      EXPECT_EQ(round_to(type, value), value) << format.name << ' ' << code;
    }
    if (format.poison) {
      EXPECT_TRUE(std::isnan(decode(type, *format.poison))) << format.name;
      EXPECT_EQ(poison_bits(type), *format.poison);
    }
  }
}

TEST(ElementType, TiesGoToTheEvenNeighbour) {
  EXPECT_EQ(round_to(ElementType::bf16, 1.0 + 0x1p-8), 1.0);
  EXPECT_EQ(round_to(ElementType::bf16, 1.0 + 0x3p-8), 1.0 + 0x1p-6);
  EXPECT_EQ(round_to(ElementType::bf16, 1.0 + 0x1p-8 + 0x1p-40), 1.0 + 0x1p-7);
  EXPECT_EQ(round_to(ElementType::fp16, 0x1p-25), 0.0);
  EXPECT_EQ(round_to(ElementType::fp16, 0x1.8p-24), 0x1p-23);
}

TEST(ElementType, ValuesPastTheLargestBecomeInfinityOnlyPastHalfAnUlp) {
  EXPECT_EQ(round_to(ElementType::fp16, 65519.0), 65504.0);
  EXPECT_EQ(round_to(ElementType::fp16, 65520.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(round_to(ElementType::fp16, -65520.0), -std::numeric_limits<double>::infinity());
}

TEST(ElementType, AnUnknownNameIsRefusedWithTheAllowedOnes) {
  EXPECT_EQ(element_type_from_name("bf16"), ElementType::bf16);
  EXPECT_THROW((void)element_type_from_name("float"), InvalidInput);
}

}  // namespace
}  // namespace attest
