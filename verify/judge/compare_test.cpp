#include "verify/judge/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attest {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Compare, NaNNeverPassesUnlessNaNIsWanted) {
  EXPECT_FALSE(within(1.0, nan));
  EXPECT_FALSE(within(nan, 0.0));
  EXPECT_EQ(error_over_bound(nan, 1.0, 1.0), inf);
  EXPECT_EQ(error_over_bound(1.0, nan, 1.0), inf);
  EXPECT_EQ(error_over_bound(nan, nan, 1.0), 0.0);
}

TEST(Compare, InfinitiesAgreeOnlyWithThemselves) {
  EXPECT_EQ(error_over_bound(-inf, -inf, 0.0), 0.0);
  EXPECT_EQ(error_over_bound(inf, -inf, 0.0), inf);
  EXPECT_EQ(error_over_bound(-1e30, -inf, 0.0), inf);
}

TEST(Compare, AZeroBoundAllowsOnlyEquality) {
  EXPECT_EQ(error_over_bound(1.0, 1.0, 0.0), 0.0);
  EXPECT_EQ(error_over_bound(1.0, 1.5, 0.0), inf);
  EXPECT_EQ(error_over_bound(1.0, 1.5, 0.25), 2.0);
}

TEST(Compare, TheWorstElementIsNamedAndElementsWithoutBoundAreCounted) {
  Tensor<float> got({1, 2, 2, 3}, 1.0F);
  Tensor<double> want({1, 2, 2, 3}, 1.0);
  Tensor<double> bound({1, 2, 2, 3}, 0.5);
  got.at(0, 1, 0, 2) = 2.0F;
  bound.at(0, 0, 0, 0) = inf;
  const Comparison comparison = compare(got, want, bound);
  EXPECT_FALSE(comparison.is_within());
  EXPECT_EQ(comparison.worst.index, (Shape{0, 1, 0, 2}));
  EXPECT_EQ(comparison.worst.ratio, 2.0);
  EXPECT_EQ(comparison.vacuous, 1);
  EXPECT_EQ(comparison.elements, 12);
}

// Two plans may both overflow, one to NaN: the other's result is then wanted to be NaN, with no
// bound.
TEST(Compare, WithoutAFiniteBoundNothingIsDecidedNotEvenAboutNaN) {
  const Tensor<double> want({1, 1, 1, 1}, nan);
  const Comparison no_bound =
      compare(Tensor<float>({1, 1, 1, 1}, 0.0F), want, Tensor<double>({1, 1, 1, 1}, inf));
  EXPECT_EQ(no_bound.vacuous, 1);
  EXPECT_TRUE(no_bound.is_within());
  // The reference marks a row that sees a NaN by a NaN bound: there NaN is demanded.
  EXPECT_FALSE(compare(Tensor<float>({1, 1, 1, 1}, 0.0F), want, Tensor<double>({1, 1, 1, 1}, nan))
                   .is_within());
  EXPECT_FALSE(compare(Tensor<float>({1, 1, 1, 1}, 0.0F), Tensor<double>({1, 1, 1, 1}, 1.0),
                       Tensor<double>({1, 1, 1, 1}, nan))
                   .is_within());
}

TEST(Compare, SameBitsOrBothNaNTellsSignedZerosApartButNoNaNs) {
  EXPECT_FALSE(same_bits_or_both_nan(0.0F, -0.0F));
  EXPECT_TRUE(same_bits_or_both_nan(std::nanf("1"), -std::nanf("2")));
  EXPECT_FALSE(same_bits_or_both_nan(std::nanf(""), 1.0F));
  EXPECT_FALSE(same_bits_or_both_nan(1.0F, std::nanf("")));
  EXPECT_FALSE(same_bits_or_both_nan(1.0F, std::nextafter(1.0F, 2.0F)));
}

}  // namespace
}  // namespace attest
