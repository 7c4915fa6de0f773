#include "core/attention/element_type.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

/// Codes of e2m1 from 0 on without their sign, as the OCP Microscaling Formats Specification 1.0
/// lists them.
constexpr std::array<double, 8> numbers_of_e2m1{0, 0.5, 1, 1.5, 2, 3, 4, 6};

// From the fields of a code, as the OCP 8-bit Floating Point Specification 1.0 lists them.
double number_of(ElementType type, std::uint32_t code) {
  if (type == ElementType::int8) return code < 128 ? code : static_cast<double>(code) - 256;
  if (type == ElementType::int4) return code < 8 ? code : static_cast<double>(code) - 16;
  if (type == ElementType::e2m1) return (code < 8 ? 1 : -1) * numbers_of_e2m1.at(code % 8);
  const int fraction_bits = type == ElementType::e4m3 ? 3 : 2;
  const int bias = type == ElementType::e4m3 ? 7 : 15;
  const double sign = (code & 0x80U) != 0 ? -1 : 1;
  const auto exponent = static_cast<int>(code & 0x7fU) >> fraction_bits;
  const int fraction = static_cast<int>(code) & ((1 << fraction_bits) - 1);
  const double part = std::ldexp(fraction, -fraction_bits);
  if (type == ElementType::e4m3 && exponent == 15 && fraction == 7) return std::nan("");
  if (type == ElementType::e5m2 && exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(part, 1 - bias);
  return sign * std::ldexp(1 + part, exponent - bias);
}

TEST(ElementType, AllCodesOf8And4BitsAreTheirPublishedNumbersAndSurvive) {
  for (const ElementType type : code_types()) {
    EXPECT_EQ(format_of(type).size_bytes, 1U);
    const bool is_of_4_bits = type == ElementType::e2m1 || type == ElementType::int4;
    EXPECT_EQ(bits_of(type), is_of_4_bits ? 4 : 8);
    EXPECT_EQ(pattern_count(type), is_of_4_bits ? 16U : 256U);
    for (std::uint32_t code = 0; code < pattern_count(type); ++code) {
      const double want = number_of(type, code);
      const float got = decode(type, code);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << format_of(type).name << ' ' << code;
        EXPECT_TRUE(std::isnan(decode(type, encode(type, got))));
        continue;
      }
      EXPECT_EQ(got, want) << format_of(type).name << ' ' << code;
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << format_of(type).name << ' ' << code;
      EXPECT_EQ(encode(type, got), code) << format_of(type).name;
      const bool is_never_made = is_whole(type) && want < -format_of(type).max_finite;
      if (std::isinf(want) || is_never_made) continue;
      EXPECT_EQ(round_to(type, want), want) << format_of(type).name << ' ' << code;
    }
  }
}

// The definition: the nearest number that a code stands for, the even code at a tie.
TEST(ElementType, RoundingToACodeFindsTheNearestOfThemAll) {
  for (const ElementType type : code_types()) {
    const double most = format_of(type).max_finite;
    for (std::uint64_t i = 0; i < 20000; ++i) {
      const int size = static_cast<int>(random_below(5, 1, i, 36)) - 20;
      double value = std::ldexp(random_normal(5, 0, i), size);
      // Ties, among others: halfway between neighbours.
      if (i % 3 == 0) value = std::nearbyint(value * 16) / 16;
      double nearest = 0, least = std::numeric_limits<double>::infinity();
      for (std::uint32_t code = 0; code < pattern_count(type); ++code) {
        const double number = number_of(type, code);
        if (!(std::abs(number) <= most)) continue;
        const double distance = std::abs(number - std::clamp(value, -most, most));
        if (distance < least || (distance == least && code % 2 == 0 && number != nearest)) {
          nearest = number;
          least = distance;
        }
      }
      EXPECT_EQ(round_to(type, value), nearest) << format_of(type).name << ' ' << value;
    }
  }
}

// A wrong key that fp32 does not hold must not become a right one.
TEST(ElementType, NumbersOfKeysComeBackUpToTheLongestLengthAndOthersStayPastIt) {
  constexpr std::uint32_t longest = 1U << 24U;
  for (const std::uint32_t key : {0U, 1U, 127U, 131'073U, longest - 1, ~0U}) {
    const float number = decode(ElementType::int32, key);
    EXPECT_EQ(number, static_cast<std::int32_t>(key));
    EXPECT_EQ(encode(ElementType::int32, number), key);
    EXPECT_EQ(round_to(ElementType::int32, number), number);
  }
  for (const std::uint32_t no_key : {longest, longest + 1, 0x7fffffffU}) {
    EXPECT_GE(decode(ElementType::int32, no_key), static_cast<float>(longest));
  }
  EXPECT_LT(decode(ElementType::int32, poison_bits(ElementType::int32)), -1);
  EXPECT_FALSE(has_nan(ElementType::int32));
}

TEST(ElementType, CodesSaturate) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const ElementType type : code_types()) {
    const double most = format_of(type).max_finite;
    EXPECT_EQ(round_to(type, infinity), most);
    EXPECT_EQ(round_to(type, -infinity), -most);
    EXPECT_EQ(round_to(type, 1e30), most);
    EXPECT_EQ(round_to(type, -most * (1 + 0x1p-20)), -most);
    const bool has_none =
        type == ElementType::int8 || type == ElementType::int4 || type == ElementType::e2m1;
    EXPECT_EQ(std::isnan(round_to(type, std::nan(""))), !has_none) << format_of(type).name;
    EXPECT_EQ(has_nan(type), !has_none);
    if (!has_none) continue;
    EXPECT_EQ(round_to(type, std::nan("")), 0);
    for (const double special : {std::nan(""), infinity, -infinity}) {
      EXPECT_EQ(encode(type, static_cast<float>(special)), 0U);
    }
  }
  EXPECT_EQ(format_of(ElementType::e2m1).max_finite, 6);
  EXPECT_EQ(format_of(ElementType::e2m1).min_normal, 1);
  EXPECT_EQ(format_of(ElementType::e2m1).min_subnormal, 0.5);
  EXPECT_EQ(format_of(ElementType::int4).max_finite, 7);
  EXPECT_EQ(format_of(ElementType::e4m3).max_finite, 448);
  EXPECT_EQ(format_of(ElementType::e5m2).max_finite, 57344);
  EXPECT_EQ(format_of(ElementType::e4m3).min_subnormal, 0x1p-9);
  EXPECT_EQ(format_of(ElementType::e5m2).min_subnormal, 0x1p-16);
}

TEST(ElementType, ZeroOfE2m1HasASignAndThatOfInt4HasNone) {
  EXPECT_TRUE(std::signbit(round_to(ElementType::e2m1, -0.0)));
  EXPECT_TRUE(std::signbit(round_to(ElementType::e2m1, -0.25)));
  EXPECT_EQ(encode(ElementType::e2m1, -0.0F), 0x8U);
  EXPECT_FALSE(std::signbit(round_to(ElementType::int4, -0.0)));
  EXPECT_FALSE(std::signbit(round_to(ElementType::int4, -0.5)));
}

TEST(ElementType, ARowOf4BitsTakesABytePerTwoColumns) {
  EXPECT_EQ(units_of(ElementType::int4, 0), 0);
  EXPECT_EQ(units_of(ElementType::int4, 1), 1);
  EXPECT_EQ(units_of(ElementType::e2m1, 64), 32);
  EXPECT_EQ(units_of(ElementType::e2m1, 65), 33);
  EXPECT_EQ(units_of(ElementType::int8, 65), 65);
  EXPECT_EQ(units_of(ElementType::fp32, 65), 65);
}

// OCP Microscaling Formats Specification 1.0: the exponent with a bias of 127.
TEST(ElementType, CodesOfUe8m0ArePowersOfTwoAndSurvive) {
  constexpr ElementType type = ElementType::ue8m0;
  EXPECT_EQ(format_of(type).size_bytes, 1U);
  for (std::uint32_t code = 0; code < 255; ++code) {
    const float number = decode(type, code);
    EXPECT_EQ(number, std::ldexp(1.0, static_cast<int>(code) - 127)) << code;
    EXPECT_EQ(encode(type, number), code);
    EXPECT_EQ(round_to(type, number), number) << code;
    if (code == 254) continue;
    EXPECT_EQ(round_to(type, 1.25 * number), number) << code;
    EXPECT_EQ(round_to(type, 1.5 * number), 2 * number) << code;
  }
  EXPECT_TRUE(std::isnan(decode(type, 255)));
  EXPECT_EQ(encode(type, std::nanf("")), 255U);
  EXPECT_EQ(encode(type, std::numeric_limits<float>::infinity()), 255U);
  EXPECT_TRUE(std::isnan(round_to(type, std::nan(""))));
  EXPECT_EQ(round_to(type, 0x1.8p127), 0x1p127);
  EXPECT_EQ(round_to(type, std::numeric_limits<double>::infinity()), 0x1p127);
  for (const double below : {0x1p-128, 0.0, -0.0, -1.0}) EXPECT_EQ(round_to(type, below), 0x1p-127);
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
