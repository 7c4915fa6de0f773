#include "core/attention/exp_method.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "core/base/error.hpp"

namespace attest {
namespace {

/// Largest excess of |computed - exact| over what the method allows, in units of the exact value;
/// positive: broken.
template <class Function>
double worst_excess(const ExpMethod& method, Function computed) {
  double worst = -1;
  for (int step = 0; step <= 87000; ++step) {
    const float x = -static_cast<float>(step) / 1000.0F;
    const double exact = std::exp(static_cast<double>(x));
    const double error = std::abs(static_cast<double>(computed(x)) - exact) / exact;
    const double allowed =
        method.relative_error + method.argument_error * std::abs(static_cast<double>(x));
    worst = std::max(worst, error - allowed);
  }
  return worst;
}

float folded_exp2(float x) {
  return std::exp2(x * std::numbers::log2e_v<float>);
}

TEST(ExpMethod, LibraryExponentialStaysWithinItsDeclaredError) {
  EXPECT_LE(worst_excess(library_expf(), [](float x) { return std::exp(x); }), 0);
}

TEST(ExpMethod, ExponentialOfAFoldedArgumentStaysWithinItsDeclaredError) {
  EXPECT_LE(worst_excess(exp2_folded(), folded_exp2), 0);
}

TEST(ExpMethod, FoldingTheFactorNeedsATermThatGrowsWithTheArgument) {
  EXPECT_GT(worst_excess(library_expf(), folded_exp2), 0);
}

TEST(ExpMethod, ConstantsAreTheDocumentedUlpCounts) {
  EXPECT_EQ(library_expf().relative_error, 0x1p-22);
  EXPECT_EQ(library_expf().argument_error, 0);
  EXPECT_EQ(fast_expf().relative_error, 0x1p-22);
  EXPECT_EQ(fast_expf().argument_error, 1.173 * 0x1p-23);
  EXPECT_GE(exp2_folded().argument_error, 0x1p-23);
  EXPECT_LE(exp2_folded().argument_error, 0x1.001p-23);
}

/// 2^x of a folded argument by FlashAttention-4's polynomial of degree 3.
float cubic_exp2(float x) {
  const float argument = x * std::numbers::log2e_v<float>;
  const float whole = std::floor(argument);
  const float f = argument - whole;
  float p = 0.077119089663028717041015625F;
  for (const float c : {0.227564394474029541015625F, 0.695146143436431884765625F, 1.0F}) {
    p = std::fma(p, f, c);
  }
  return std::ldexp(p, static_cast<int>(whole));
}

/// 2^x as cubic_exp2() forms it, but floor() is an addition that rounds down and leaves the whole
/// part in the last bits of a large number [Cody and Waite; FlashAttention-4]; 0 from 2^-127 down.
float magic_cubic_exp2(float x) {
  constexpr float magic = 0x1.8p23F;
  const float argument = std::max(x * std::numbers::log2e_v<float>, -127.0F);
  // Exact in double, so that only the step to float rounds.
  const double sum = static_cast<double>(argument) + static_cast<double>(magic);
  auto shifted = static_cast<float>(sum);
  if (static_cast<double>(shifted) > sum) shifted = std::nextafter(shifted, 0.0F);
  const float f = argument - (shifted - magic);
  const float p = std::fma(std::fma(std::fma(0.077119F, f, 0.227564F), f, 0.695146F), f, 1.0F);
  const std::uint32_t whole = std::bit_cast<std::uint32_t>(shifted) << 23U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + whole);
}

TEST(ExpMethod, ACubicThatRoundsDownByALargeAdditionStaysWithinThePolynomialsError) {
  EXPECT_LE(worst_excess(polynomial_exp2(3), magic_cubic_exp2), 0);
  EXPECT_EQ(magic_cubic_exp2(-std::numeric_limits<float>::infinity()), 0.0F);
}

TEST(ExpMethod, WhereSomeWeightsAreOfAPolynomialItsErrorHoldsForAll) {
  EXPECT_GE(polynomial_exp2(3).relative_error, ex2_approx().relative_error);
  EXPECT_GE(polynomial_exp2(3).argument_error, ex2_approx().argument_error);
}

TEST(ExpMethod, APolynomialStaysWithinItsDeclaredErrorAndNotWithinThatOfAHigherDegree) {
  EXPECT_LE(worst_excess(polynomial_exp2(3), cubic_exp2), 0);
  EXPECT_GT(worst_excess(polynomial_exp2(4), cubic_exp2), 0);
  EXPECT_GT(polynomial_exp2(4).relative_error, polynomial_exp2(5).relative_error);
  EXPECT_THROW(static_cast<void>(polynomial_exp2(2)), InvalidInput);
  EXPECT_EQ(ex2_approx().relative_error, 0x1p-22);
}

}  // namespace
}  // namespace attest
