#include "core/inputs/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace attest {
namespace {

// Pinned values: a change would silently give every committed seed another meaning.
TEST(Random, ValuesAreTheSameOnEveryMachine) {
  // Known answer of Philox4x32-10 for a zero counter and key: 6627e8d5 e169c58d ...
  EXPECT_EQ(random_bits(0, 0, 0), 0xe169c58d6627e8d5ULL);
  EXPECT_EQ(random_bits(1, 2, 3), random_bits(1, 2, 3));
  EXPECT_NE(random_bits(1, 2, 3), random_bits(1, 2, 4));
  EXPECT_NE(random_bits(1, 2, 3), random_bits(1, 3, 3));
  EXPECT_NE(random_bits(1, 2, 3), random_bits(2, 2, 3));
  EXPECT_NE(random_bits(1ULL << 40U, 0, 0), random_bits(0, 0, 0));
}

TEST(Random, BelowStaysInRangeAndReachesBothEnds) {
  std::int64_t low = 7;
  std::int64_t high = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::int64_t value = random_below(5, 0, i, 7);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_EQ(low, 0);
  EXPECT_EQ(high, 6);
  EXPECT_EQ(random_below(5, 0, 0, 1), 0);
}

// Kolmogorov-Smirnov distance against the exact distribution: sqrt(n) D exceeds 2.5 with
// probability 7e-6.
TEST(Random, NormalsFollowTheNormalDistribution) {
  constexpr std::size_t count = 200000;
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random_normal(9, 1, i);
  std::ranges::sort(values);
  double distance = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double cdf = 0.5 * std::erfc(-values[i] / std::sqrt(2.0));
    distance = std::max({distance, std::abs(cdf - static_cast<double>(i) / count),
                         std::abs(cdf - static_cast<double>(i + 1) / count)});
  }
  EXPECT_LE(distance * std::sqrt(static_cast<double>(count)), 2.5);
}

}  // namespace
}  // namespace attest
