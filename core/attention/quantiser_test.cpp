#include "core/attention/quantiser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace attest {
namespace {

/// Whole numbers that differ in every row, column, head and entry.
Tensor<float> numbered(const Shape& shape) {
  Tensor<float> tensor(shape);
  float number = 0;
  for (float& x : tensor.values()) x = number += 1;
  return tensor;
}

// Entry 0 has 2 of 3 rows, entry 1 none: rows that do not exist may hold anything.
TEST(Smoothing, TakesTheMeanOfTheRowsThatExistFromThemAndFromNoOthers) {
  const Tensor<float> values = numbered({2, 2, 3, 2});
  const auto rows = [](std::int64_t entry) { return entry == 0 ? 2 : 0; };
  const Tensor<float> means = column_means(values, rows);
  EXPECT_EQ(means.shape(), (Shape{2, 2, 1, 2}));
  const Tensor<float> left = without_means(values, means, rows);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t c = 0; c < 2; ++c) {
      EXPECT_EQ(means.at(0, h, 0, c), (values.at(0, h, 0, c) + values.at(0, h, 1, c)) / 2);
      EXPECT_EQ(left.at(0, h, 0, c), -1);  // neighbouring rows differ by 2
      EXPECT_EQ(left.at(0, h, 1, c), 1);
      EXPECT_EQ(left.at(0, h, 2, c), values.at(0, h, 2, c));
      EXPECT_EQ(means.at(1, h, 0, c), 0);
      EXPECT_TRUE(std::ranges::equal(left.row(1, h, 0), values.row(1, h, 0)));
    }
  }
}

// The least power of two of which M times it is enough: M itself still fits, what follows does not.
TEST(ScaleOfUe8m0, IsTheLeastPowerOfTwoThatLeavesNothingToSaturate) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const ElementType code : code_types()) {
    const auto most = static_cast<float>(format_of(code).max_finite);
    const auto scale = [&](float amax) { return scale_for(amax, code, ScaleFormat::ue8m0); };
    for (const int exponent : {-126, -20, -1, 0, 1, 90}) {
      const float power = std::ldexp(1.0F, exponent), fits = most * power;
      EXPECT_EQ(scale(fits), power) << format_of(code).name << ' ' << exponent;
      EXPECT_EQ(scale(std::nextafter(fits, infinity)), 2 * power) << format_of(code).name;
      EXPECT_EQ(scale(std::nextafter(fits / 2, infinity)), power) << format_of(code).name;
    }
    EXPECT_EQ(scale(0), 1);
    EXPECT_EQ(scale(0x1p-149F), 0x1p-127F);
    EXPECT_EQ(scale(most * 0x1p-127F), 0x1p-127F);
    const float largest = scale(std::numeric_limits<float>::max());
    EXPECT_GE(static_cast<double>(most) * largest, std::numeric_limits<float>::max());
  }
  EXPECT_EQ(scale_for(500, ElementType::e4m3, ScaleFormat::ue8m0), 2);
  EXPECT_EQ(scale_for(7, ElementType::e2m1, ScaleFormat::ue8m0), 2);
  EXPECT_EQ(scale_for(7, ElementType::int4, ScaleFormat::ue8m0), 1);
}

TEST(ScaleOfUe8m0, IsStoredAsItIs) {
  for (const float amax : {0.0F, 0x1p-149F, 1e-30F, 0.3F, 448.0F, 3e38F}) {
    const float scale = scale_for(amax, ElementType::e4m3, ScaleFormat::ue8m0);
    EXPECT_EQ(decode(ElementType::ue8m0, encode(ElementType::ue8m0, scale)), scale) << amax;
  }
}

TEST(Quantiser, DividesByThePowerOfTwoThatItGives) {
  Tensor<float> values(Shape{1, 1, 1, 4});
  const std::array<float, 4> numbers{7, -2.5F, 1, -0.5F};
  std::ranges::copy(numbers, values.values().begin());
  const auto one = [](std::int64_t) { return std::int64_t{1}; };
  const QuantisedTensor made =
      quantise(values, ElementType::e2m1, Scales::row, one, ScaleFormat::ue8m0);
  EXPECT_EQ(made.scales.at(0, 0, 0, 0), 2);
  // 3.5 lies halfway between 3 and 4, 1.25 between 1 and 1.5, 0.25 between 0 and 0.5.
  const std::array<float, 4> want{4, -1, 0.5F, -0.0F};
  EXPECT_TRUE(std::ranges::equal(made.codes.values(), want));
  EXPECT_TRUE(std::signbit(made.codes.at(0, 0, 0, 3)));
}

// In fp32 a sum of so many numbers near 1 would stand still at 2^24.
TEST(Smoothing, SumsInDouble) {
  const Tensor<float> ones({1, 1, (1 << 24) + 8, 1}, 1.0F);
  EXPECT_EQ(column_means(ones, [](auto) { return (1 << 24) + 8; }).at(0, 0, 0, 0), 1.0F);
}

}  // namespace
}  // namespace attest
