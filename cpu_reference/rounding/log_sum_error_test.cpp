#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/inputs/random.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/rounding/exponential_error.hpp"

namespace attest {
namespace {

/// Relative error of logf: it is within an ulp.
constexpr double logf_error = 0x1p-23;

/// |computed(m, l) - exact| over what the piece and the last addition allow: the largest of many.
/// `unit`: of m, in natural logarithms.
template <class Computed>
double worst_lse(LseForm form, double unit, Computed computed) {
  const LogSumError error = log_sum_error(logf_error, form, fp32_arithmetic);
  double worst = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double size = i % 2 == 0 ? 0 : std::exp2(20 * random_uniform(6, 0, i) - 10);
    // A scale that holds log2 e was rounded, and so was its product with a score: exact here.
    const auto m = static_cast<float>(size * random_normal(6, 1, i));
    const auto l = static_cast<float>(std::exp2(12 * random_uniform(6, 2, i)));
    const Quad of_m = Quad(m) * unit;
    const Quad exact = Quad(m) * unit + log(Quad(l));
    const double before = error.logarithm * std::log(static_cast<double>(l)) +
                          error.per_maximum * std::abs(static_cast<double>(of_m));
    const double allowed =
        before + fp32_arithmetic.unit_roundoff * (std::abs(static_cast<double>(exact)) + before);
    const double got = std::abs(static_cast<double>(Quad(computed(m, l)) - exact));
    if (allowed > 0) worst = std::max(worst, got / allowed);
  }
  return worst;
}

TEST(LogSumError, an_lse_of_a_natural_maximum_stays_within_it_and_comes_near) {
  const double worst =
      worst_lse(LseForm::natural, 1, [](float m, float l) { return m + std::log(l); });
  EXPECT_LE(worst, 1);
  EXPECT_GT(worst, 0.1);
}

TEST(LogSumError, an_lse_of_a_maximum_in_units_of_log2_stays_within_it_both_ways) {
  constexpr float ln2 = std::numbers::ln2_v<float>;
  const double apart = worst_lse(LseForm::log2, std::numbers::ln2,
                                 [](float m, float l) { return m * ln2 + std::log(l); });
  const double together = worst_lse(LseForm::log2, std::numbers::ln2,
                                    [](float m, float l) { return ln2 * (m + std::log2(l)); });
  for (const double worst : {apart, together}) {
    EXPECT_LE(worst, 1);
    EXPECT_GT(worst, 0.1);
  }
}

TEST(LogSumError, a_maximum_in_units_of_log2_is_not_free) {
  EXPECT_GT(
      worst_lse(LseForm::natural, std::numbers::ln2,
                [](float m, float l) { return m * std::numbers::ln2_v<float> + std::log(l); }),
      1);
}

}  // namespace
}  // namespace attest
