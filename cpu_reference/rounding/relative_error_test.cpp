#include "cpu_reference/rounding/relative_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"

namespace attest {
namespace {

TEST(LogOf, products_of_factors_stay_within_the_sum_of_their_logarithms_and_reach_it) {
  for (const double e : {0x1p-24, 0x1p-8, 0.3}) {
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      long double product = 1;
      double logs = 0;
      const std::int64_t count = 1 + random_below(seed, 0, 0, 20);
      for (std::int64_t i = 0; i < count; ++i) {
        const bool is_up = random_below(seed, 1, static_cast<std::uint64_t>(i), 2) == 0;
        product *= static_cast<long double>(is_up && seed % 2 == 0 ? 1 + e : 1 - e);
        logs += log_of(e);
      }
      // A sum of 20 doubles is not exact, and is the wider for it by less than this.
      const double allowed = std::expm1(logs) * (1 + 0x1p-40);
      worst = std::max(worst, static_cast<double>(std::abs(product - 1)) / allowed);
      EXPECT_LE(std::abs(std::log(product)), static_cast<long double>(logs * (1 + 0x1p-40)));
    }
    EXPECT_LE(worst, 1) << e;
    EXPECT_GT(worst, 0.1) << e;
  }
}

TEST(LogOf, a_factor_that_may_be_0_has_no_logarithm) {
  EXPECT_EQ(log_of(0), 0);
  EXPECT_EQ(log_of(1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(log_of(std::numeric_limits<double>::quiet_NaN()),
            std::numeric_limits<double>::infinity());
}

TEST(DeclaredError, quotients_of_fp32_numbers_stay_within_it_even_where_none_is_declared) {
  double worst = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const auto a = static_cast<float>(1 + random_uniform(1, 0, i));
    const auto b = static_cast<float>(1 + random_uniform(1, 1, i));
    const double exact = static_cast<double>(a) / static_cast<double>(b);
    const double error = std::abs(static_cast<double>(a / b) - exact) / exact;
    worst = std::max(worst, error / declared_error(0, fp32_arithmetic));
  }
  // The exact quotient is itself rounded to double.
  EXPECT_LE(worst, 1 + 0x1p-28);
  EXPECT_GT(worst, 0.9);
  EXPECT_EQ(declared_error(0x1p-22, fp32_arithmetic), 0x1p-22);
}

TEST(Underflow, a_product_and_where_sums_are_flushed_its_sum_lose_what_it_says) {
  const Underflow kept = underflow_of(fp32_arithmetic, false);
  const Underflow flushed = underflow_of(fp32_arithmetic, true);
  double of_product = 0, of_flush = 0;
  const float least = std::numeric_limits<float>::min();
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const auto a = static_cast<float>(std::ldexp(1 + random_uniform(2, 0, i), -100));
    const auto b = static_cast<float>(std::ldexp(1 + random_uniform(2, 1, i), -30));
    const double exact = static_cast<double>(a) * static_cast<double>(b);
    const float product = a * b;
    of_product = std::max(of_product, std::abs(static_cast<double>(product) - exact));
    if (product < least) of_flush = std::max(of_flush, exact);
    // The sum of subnormals is exact.
    EXPECT_EQ(static_cast<double>(product + product), 2 * static_cast<double>(product));
  }
  EXPECT_LE(of_product, kept.of_result);
  EXPECT_GT(of_product, 0.1 * kept.of_result);
  EXPECT_LE(of_flush, flushed.of_result);
  EXPECT_GT(of_flush, 0.1 * flushed.of_result);
  EXPECT_EQ(kept.results_per_term, 1);
  EXPECT_EQ(flushed.results_per_term, 2);
}

}  // namespace
}  // namespace attest
