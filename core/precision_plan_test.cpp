#include "core/precision_plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.hpp"

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

TEST(ExpMethod, APolynomialStaysWithinItsDeclaredErrorAndNotWithinThatOfAHigherDegree) {
  EXPECT_LE(worst_excess(polynomial_exp2(3), cubic_exp2), 0);
  EXPECT_GT(worst_excess(polynomial_exp2(4), cubic_exp2), 0);
  EXPECT_GT(polynomial_exp2(4).relative_error, polynomial_exp2(5).relative_error);
  EXPECT_THROW(static_cast<void>(polynomial_exp2(2)), InvalidInput);
  EXPECT_EQ(ex2_approx().relative_error, 0x1p-22);
}

}  // namespace
}  // namespace attest
