#include "gpu/primitives/number_code.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/inputs/random.hpp"

namespace attest {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

unsigned defined_code(Code code, float x) {
  const ElementType type = format_with(code, ElementType::fp32);
  return encode(type, static_cast<float>(round_to(type, x)));
}

bool same_code(Code code, unsigned a, unsigned b) {
  const ElementType type = format_with(code, ElementType::fp32);
  const bool both_nan = std::isnan(decode(type, a)) && std::isnan(decode(type, b));
  return a == b || both_nan;
}

/// Numbers of every exponent; beside and halfway between codes.
std::vector<float> telling_numbers() {
  std::vector<float> numbers{0.0F, infinity, std::numeric_limits<float>::quiet_NaN()};
  for (std::uint32_t high = 0; high < 0x7f80U; high += 3) {
    for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0xffffU}) {
      numbers.push_back(std::bit_cast<float>(high << 16U | low));
    }
  }
  for (const ElementType type : code_types()) {
    for (std::uint32_t bits = 0; bits < 127; ++bits) {
      const float low = decode(type, bits), high = decode(type, bits + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const float middle = (low + high) / 2;
      for (const float x : {low, middle}) {
        numbers.push_back(x);
        numbers.push_back(std::nextafter(x, infinity));
        numbers.push_back(std::nextafter(x, -infinity));
      }
    }
  }
  const std::size_t positive = numbers.size();
  for (std::size_t i = 0; i < positive; ++i) numbers.push_back(-numbers[i]);
  return numbers;
}

TEST(NumberCode, IsTheDefinitionsForNumbersOfEveryExponentAndAtEveryTie) {
  for (const float x : telling_numbers()) {
    for (const Code code : {Code::e4m3, Code::e5m2, Code::int8}) {
      const unsigned want = defined_code(code, x);
      unsigned got = 0;
      with_code(code, [&](auto known) { got = pair_of_codes<known.value>(x, -x); });
      ASSERT_TRUE(same_code(code, got & 0xffU, want)) << name_of(code) << " of " << x;
      ASSERT_TRUE(same_code(code, got >> 8U, defined_code(code, -x))) << name_of(code) << -x;
    }
  }
}

/// A quotient as good as x / scale: the same, or one that all codes round to the same 0.
bool as_good(float got, float want) {
  if (std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want)) return true;
  return std::abs(want) < 0x1p-39F && std::abs(got) < 0x1p-38F &&
         std::signbit(got) == std::signbit(want);
}

TEST(ScaleDivisor, GivesTheQuotientOfADivisionForDrawnNumbers) {
  for (std::uint64_t i = 0; i < 2'000'000; ++i) {
    const std::uint64_t bits = random_bits(20261128, 0, i);
    const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(bits) & 0x7fffffffU);
    if (!(scale > 0) || !std::isfinite(scale)) continue;
    // Of no more than 2^17 scales: M is 57344, and fl(amax / M) may be subnormal.
    const float digits = 1.0F + static_cast<float>(bits >> 32U & 0x7fffffU) * 0x1p-23F;
    const int exponent = static_cast<int>(bits >> 56U) % 62 - 46;
    const float x = std::ldexp((bits >> 55U & 1U) != 0 ? -digits : digits, exponent) * scale;
    if (!std::isfinite(x)) continue;
    ASSERT_TRUE(as_good(ScaleDivisor(scale).quotient(x), x / scale)) << x << " / " << scale;
  }
}

// Where a quotient lies as near to the middle of two numbers of fp32 as one can: a product of the
// middle and the scale, rounded.
TEST(ScaleDivisor, GivesTheQuotientOfADivisionBesideTies) {
  for (std::uint64_t i = 0; i < 300'000; ++i) {
    const std::uint64_t bits = random_bits(20261128, 1, i);
    const double scale = 1.0 + static_cast<double>(bits & 0x7fffffU) * 0x1p-23;
    const double middle = 1.0 + static_cast<double>(2 * (bits >> 40U & 0x7fffffU) + 1) * 0x1p-24;
    const auto x = static_cast<float>(middle * scale);
    for (const float near : {x, std::nextafter(x, 0.0F), std::nextafter(x, infinity)}) {
      const auto divisor = static_cast<float>(scale);
      ASSERT_EQ(ScaleDivisor(divisor).quotient(near), near / divisor) << near << " / " << divisor;
    }
  }
}

TEST(ScaleDivisor, KeepsSignsOfZerosInfinitiesAndNaN) {
  for (const float scale : {1.0F, 0.3F, 0x1p-100F, 1e-44F}) {
    const ScaleDivisor by(scale);
    EXPECT_TRUE(std::signbit(by.quotient(-0.0F)) && by.quotient(-0.0F) == 0) << scale;
    EXPECT_FALSE(std::signbit(by.quotient(0.0F))) << scale;
    EXPECT_EQ(by.quotient(infinity), infinity) << scale;
    EXPECT_EQ(by.quotient(-infinity), -infinity) << scale;
    EXPECT_TRUE(std::isnan(by.quotient(std::nanf("")))) << scale;
    EXPECT_TRUE(as_good(by.quotient(-1e-45F), -1e-45F / scale)) << scale;
  }
  EXPECT_EQ(ScaleDivisor(1).quotient(3e38F), 3e38F) << "numbers without scales may be any";
}

}  // namespace
}  // namespace attest
