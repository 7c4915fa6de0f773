#include "cpu_reference/same_bits.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace attest {
namespace {

TEST(SameBits, TellsNaNsAndZerosApartByTheirBits) {
  const std::array<float, 2> values{std::nanf("1"), 0.0F};
  EXPECT_TRUE(same_bits(values, std::array{std::nanf("1"), 0.0F}));
  EXPECT_FALSE(same_bits(values, std::array{std::nanf("2"), 0.0F}));
  EXPECT_FALSE(same_bits(values, std::array{-std::nanf("1"), 0.0F}));
  EXPECT_FALSE(same_bits(values, std::array{std::nanf("1"), -0.0F}));
}

TEST(SameBits, OfAnotherLengthNothingIsTheSame) {
  const std::array<float, 2> values{1.0F, 2.0F};
  EXPECT_FALSE(same_bits(values, std::array{1.0F}));
  EXPECT_FALSE(same_bits(values, std::array{1.0F, 2.0F, 3.0F}));
}

}  // namespace
}  // namespace attest
