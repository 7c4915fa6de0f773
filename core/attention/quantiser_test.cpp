#include "core/attention/quantiser.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

// In fp32 a sum of so many numbers near 1 would stand still at 2^24.
TEST(Smoothing, SumsInDouble) {
  const Tensor<float> ones({1, 1, (1 << 24) + 8, 1}, 1.0F);
  EXPECT_EQ(column_means(ones, [](auto) { return (1 << 24) + 8; }).at(0, 0, 0, 0), 1.0F);
}

}  // namespace
}  // namespace attest
