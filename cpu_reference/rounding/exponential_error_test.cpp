#include "cpu_reference/rounding/exponential_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>

#include "core/inputs/random.hpp"
#include "cpu_reference/forward/oracle.hpp"

namespace attest {
namespace {

/// |h| of computed(fl(a - b)) = e^(a - b + h), in 256 bits, over what the piece allows: the largest
/// of many differences from 0 to `least`, where results are still normal.
double worst_exponential(const ExpMethod& method, const std::function<float(float)>& computed,
                         double least) {
  const ExponentialError error = exponential_error(method, fp32_arithmetic);
  double worst = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    // Differences that are not fp32 numbers, at all sizes.
    const double size = least * std::exp2(-20 * random_uniform(5, 0, i));
    const auto b = static_cast<float>(300 * random_normal(5, 1, i));
    const auto a = static_cast<float>(static_cast<double>(b) + size * random_uniform(5, 2, i));
    const double difference = static_cast<double>(a) - static_cast<double>(b);
    if (difference < least) continue;
    const Wide h = log(Wide(computed(a - b))) - Wide(difference);
    const double allowed = error.constant + error.per_difference * -difference;
    worst = std::max(worst, std::abs(static_cast<double>(h)) / allowed);
  }
  return worst;
}

float exp2_of_folded(float x) {
  return std::exp2(x * std::numbers::log2e_v<float>);
}

TEST(ExponentialError, library_and_folded_exponentials_of_rounded_differences_stay_within_it) {
  const double of_library = worst_exponential(
      library_expf(), [](float x) { return std::exp(x); }, -87);
  EXPECT_LE(of_library, 1);
  EXPECT_GT(of_library, 0.1);
  const double of_folded = worst_exponential(exp2_folded(), exp2_of_folded, -87);
  EXPECT_LE(of_folded, 1);
  EXPECT_GT(of_folded, 0.1);
}

TEST(ExponentialError, an_exponential_at_the_limits_of_a_coarse_declaration_stays_within_it) {
  // So coarse that the logarithm of the error is not the error.
  for (const ExpMethod& coarse :
       {ExpMethod{.name = "constant", .relative_error = 0x1p-5, .argument_error = 0x1p-14},
        ExpMethod{.name = "growing", .relative_error = 0x1p-22, .argument_error = 0x1p-8},
        ExpMethod{.name = "both", .relative_error = 0x1p-2, .argument_error = 0x1p-9}}) {
    for (const double sign : {-1.0, 1.0}) {
      const auto limit = [&](float x) {
        const double size = -static_cast<double>(x);
        const double error = coarse.relative_error + coarse.argument_error * size;
        // Short of the limit by more than the rounding to fp32.
        return static_cast<float>(std::exp(-size) * (1 + sign * (error - 0x1p-23)));
      };
      const double worst = worst_exponential(coarse, limit, -87);
      EXPECT_LE(worst, 1) << coarse.name;
      EXPECT_GT(worst, 0.5) << coarse.name;
    }
  }
}

TEST(ExponentialError, an_exponential_that_may_vanish_says_nothing_but_of_equal_numbers) {
  const ExponentialError error = exponential_error(
      {.name = "useless", .relative_error = 0x1p-22, .argument_error = 0.5}, fp32_arithmetic);
  EXPECT_GT(error.per_difference, 1e30);
  EXPECT_EQ(error.per_difference * 0, 0);
}

TEST(ExponentialError, the_rounding_of_the_difference_is_needed) {
  const ExpMethod perfect{.name = "correctly rounded", .relative_error = 0, .argument_error = 0};
  const auto computed = [](float x) {
    return static_cast<float>(std::exp(static_cast<double>(x)));
  };
  const double worst = worst_exponential(perfect, computed, -87);
  EXPECT_LE(worst, 1 + 0x1p-20);  // a quotient, and a double, rounded to fp32
  EXPECT_GT(worst, 0.5);
}

}  // namespace
}  // namespace attest
