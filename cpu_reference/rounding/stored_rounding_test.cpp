#include "cpu_reference/rounding/stored_rounding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"

namespace attest {
namespace {

constexpr double overflowed = std::numeric_limits<double>::infinity();

TEST(StoredRounding, rounding_to_a_format_stays_within_it_from_subnormals_to_the_largest) {
  for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
    const ElementFormat& format = format_of(type);
    const StoredRounding rounding = stored_rounding(format);
    double worst = 0, worst_subnormal = 0;
    for (std::uint64_t i = 0; i < 20000; ++i) {
      const int exponent =
          std::ilogb(format.min_subnormal) - 2 +
          static_cast<int>(random_below(
              3, 0, i, 4 + std::ilogb(format.max_finite) - std::ilogb(format.min_subnormal)));
      const double x = std::ldexp(1 + random_uniform(3, 1, i), exponent);
      const double error = std::abs(round_to(type, x) - x);
      const double allowed = stored_error(rounding, x, 0.0);
      EXPECT_LE(error, allowed) << format.name << ' ' << x;
      double& largest = x < format.min_normal ? worst_subnormal : worst;
      if (allowed < overflowed) largest = std::max(largest, error / allowed);
    }
    EXPECT_GT(worst, 0.9) << format.name;
    EXPECT_GT(worst_subnormal, 0.9) << format.name;
  }
}

TEST(StoredRounding, below_overflow_numbers_stay_finite_and_from_the_next_binade_on_none_does) {
  for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
    const StoredRounding rounding = stored_rounding(format_of(type));
    const double below = std::nextafter(rounding.overflow, 0.0);
    EXPECT_LT(round_to(type, below), overflowed);
    EXPECT_LT(stored_error(rounding, below, 0.0), overflowed);
    EXPECT_EQ(stored_error(rounding, rounding.overflow, 0.0), overflowed);
    EXPECT_EQ(stored_error(rounding, -below, 0x1p120), overflowed);
    const double next = std::ldexp(1.0, std::ilogb(below) + 1);
    EXPECT_EQ(round_to(type, next), overflowed);
  }
}

TEST(StoredRounding, an_error_before_it_is_kept_and_rounded_as_well) {
  const StoredRounding bf16 = stored_rounding(format_of(ElementType::bf16));
  double worst = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const double x = 1 + random_uniform(4, 0, i);
    const double before = 0.01 * random_uniform(4, 1, i);
    const double got = round_to(ElementType::bf16, x + before);
    const double allowed = stored_error(bf16, x, before);
    EXPECT_LE(std::abs(got - x), allowed);
    worst = std::max(worst, std::abs(got - x) / allowed);
  }
  EXPECT_GT(worst, 0.9);
  EXPECT_EQ(stored_error(bf16, std::numeric_limits<double>::quiet_NaN(), 0.0), overflowed);
}

}  // namespace
}  // namespace attest
