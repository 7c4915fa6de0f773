#include "cpu_reference/rounding/product_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/inputs/random.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/split_product.hpp"

namespace attest {
namespace {

std::vector<Parts> ways_to_split() {
  std::vector<Parts> all;
  for (const auto format : {Parts::Format::tf32, Parts::Format::fp16, Parts::Format::bf16}) {
    for (int count = 1; count <= 3; ++count) {
      for (int cut = 0; cut <= std::min(count, 1); ++cut) {
        // Scaled, so that three parts of fp16 lie in its normal range.
        const double scaled_to = format == Parts::Format::fp16 ? 0x1p13 : 0;
        all.push_back({.format = format, .count = count, .cut = cut, .scaled_to = scaled_to});
      }
    }
  }
  return all;
}

std::string name_of(const Parts& parts) {
  return std::string(part_format(parts.format).name) + " x" + std::to_string(parts.count) +
         (parts.cut > 0 ? " cut" : "");
}

std::vector<float> normal_range(std::uint64_t seed, std::uint64_t stream, std::size_t n) {
  std::vector<float> values;
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(static_cast<float>(1 + random_uniform(seed, stream, i)));
  }
  return values;
}

/// The products of parts of x and y that are formed, in 113 bits, relative to x y.
struct PartsOfProduct {
  double error, large, small;
  PartsOfProduct(const Parts& how, float x, float y) : error(0), large(0), small(0) {
    const int exponent = scaling_exponent(how, std::vector{x});
    const auto of_x = split(how, std::vector{x}, exponent);
    const auto of_y = split(how, std::vector{y}, exponent);
    const Quad exact = ldexp(Quad(x) * Quad(y), 2 * exponent);
    Quad sum = 0;
    for (std::size_t i = 0; i < of_x.size(); ++i) {
      for (std::size_t j = 0; i + j < of_y.size(); ++j) {
        const Quad product = Quad(of_x[i][0]) * Quad(of_y[j][0]);
        sum += product;
        (i + j == 0 ? large : small) += std::abs(static_cast<double>(product / exact));
      }
    }
    error = std::abs(static_cast<double>((sum - exact) / exact));
  }
};

TEST(PartsError, products_of_parts_stay_within_it_and_come_near) {
  for (const Parts& how : ways_to_split()) {
    const PartsError error = parts_error(how);
    double worst = 0, small = 0, large = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
      const float x = normal_range(seed, 0, 1)[0], y = normal_range(seed, 1, 1)[0];
      // Equal factors leave equal rests, which add up.
      const float z = seed % 2 == 0 ? x : y;
      const PartsOfProduct product(how, x, z);
      worst = std::max(worst, product.error);
      large = std::max(large, product.large);
      small = std::max(small, product.small);
    }
    EXPECT_LE(worst, error.relative) << name_of(how);
    EXPECT_LE(large, error.large) << name_of(how);
    EXPECT_LE(small, error.small) << name_of(how);
    // 0 both: one part has no small products, three may hold every bit.
    EXPECT_GE(small, error.small / 10) << name_of(how);
    EXPECT_GE(worst, error.relative / 10) << name_of(how);
  }
}

TEST(PartsError, as_many_pairs_are_multiplied_as_the_parts_say) {
  EXPECT_EQ(parts_error({.format = Parts::Format::bf16, .count = 1}).products, 1);
  EXPECT_EQ(parts_error({.format = Parts::Format::bf16, .count = 2}).products, 3);
  EXPECT_EQ(parts_error({.format = Parts::Format::bf16, .count = 3}).products, 6);
}

TEST(ProductFloor, what_small_elements_beside_large_ones_lose_stays_within_it) {
  const Parts how{.format = Parts::Format::fp16, .count = 2, .scaled_to = 0x1p13};
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    // Beside the largest of each tensor an element far below; in half of the cases of one only.
    const auto draw = [&](std::uint64_t stream, double reach) {
      return static_cast<float>((1 + random_uniform(seed, stream, 0)) *
                                std::exp2(-reach * random_uniform(seed, stream, 1)));
    };
    const std::vector<float> xs{2, draw(0, seed % 2 == 0 ? 0 : 40)}, ys{2, draw(1, 40)};
    const auto of_x = split(how, xs, scaling_exponent(how, xs));
    const auto of_y = split(how, ys, scaling_exponent(how, ys));
    const double unscale = std::exp2(-scaling_exponent(how, xs) - scaling_exponent(how, ys));
    Quad sum = 0;
    for (std::size_t i = 0; i < of_x.size(); ++i) {
      for (std::size_t j = 0; i + j < of_y.size(); ++j) sum += Quad(of_x[i][1]) * of_y[j][1];
    }
    const Quad exact = Quad(xs[1]) * ys[1];
    const double error = std::abs(static_cast<double>(sum * unscale - exact));
    const double relative = parts_error(how).relative * std::abs(static_cast<double>(exact));
    const double floor = floor_share(how, 0) * product_floor(how, 2, 2);
    EXPECT_LE(error, relative + floor);
    if (error > relative) worst = std::max(worst, (error - relative) / floor);
  }
  EXPECT_GT(worst, 0.1);
}

TEST(TensorFloor, an_element_that_the_format_cannot_hold_has_no_part_unless_it_is_scaled) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(tensor_floor({.format = Parts::Format::fp16, .count = 2}, 1e5), infinity);
  EXPECT_LT(tensor_floor({.format = Parts::Format::fp16, .count = 2, .scaled_to = 1}, 1e5),
            infinity);
  EXPECT_EQ(product_floor({.format = Parts::Format::fp16, .count = 2}, 1, 1e5), infinity);
  EXPECT_EQ(tensor_floor({}, 1e30), 0);
  EXPECT_EQ(floor_share({}, 0.5), 1.5);
}

/// Left and right factors of one sum: of products of both signs; that are cut to half when they are
/// aligned with the first, which is 1; or whose parts leave as much as they can, all in one
/// direction.
std::pair<std::vector<float>, std::vector<float>> adversarial_factors(const Parts& how,
                                                                      const Accumulation& unit,
                                                                      std::uint64_t seed,
                                                                      std::size_t n) {
  std::vector<float> x = normal_range(seed, 2, n), y = normal_range(seed, 3, n);
  if (seed % 3 == 0) {
    for (std::size_t i = 0; i < n; i += 2) y[i] = -y[i];
  } else if (seed % 3 == 1) {
    std::ranges::fill(x, std::ldexp(2 - 0x1p-7F, -unit.fraction_bits));
    std::ranges::fill(y, 1.0F);
    x[0] = 1;
  } else {
    const int bits = part_format(how.format).significand_bits;
    std::ranges::fill(x, 1 + std::ldexp(1.0F, -bits) - std::ldexp(1.0625F, -2 * bits - 1));
    y = x;
  }
  return {x, y};
}

TEST(ProductError, sums_of_products_in_parts_on_tensor_cores_stay_within_it_and_come_near) {
  for (const Parts& how : ways_to_split()) {
    const Accumulation unit = how.format == Parts::Format::tf32 ? hopper_tf32() : hopper();
    for (const std::int64_t n : {1, 16, 100}) {
      double worst = 0;
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const auto [x, y] = adversarial_factors(how, unit, seed, static_cast<std::size_t>(n));
        Quad exact = 0;
        double absolute = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          exact += Quad(x[i]) * Quad(y[i]);
          absolute += std::abs(static_cast<double>(x[i]) * static_cast<double>(y[i]));
        }
        std::vector<float> sum{0};
        accumulate_split_product(unit, x, ElementType::fp32, scaling_exponent(how, x),
                                 SplitOperand(how, ElementType::fp32, y, 1), 0, sum);
        const double allowed =
            product_error(unit, how, static_cast<double>(n), 1, true, fp32_arithmetic) * absolute;
        worst = std::max(worst, std::abs(static_cast<double>(Quad(sum[0]) - exact)) / allowed);
      }
      EXPECT_LE(worst, 1) << name_of(how) << ' ' << n;
      EXPECT_GT(worst, 0.1) << name_of(how) << ' ' << n;
    }
  }
}

TEST(ProductError, one_chain_over_many_sums_allows_for_more_than_one_sum_does) {
  const Parts two{.format = Parts::Format::bf16, .count = 2};
  const auto error = [&](bool is_one_sum) {
    return product_error(hopper(), two, 1000, 10, is_one_sum, fp32_arithmetic);
  };
  EXPECT_GT(error(false), error(true));
  EXPECT_EQ(product_error(hopper(), {}, 1000, 10, false, fp32_arithmetic),
            accumulation_error(hopper(), 1000, 10, fp32_arithmetic));
}

}  // namespace
}  // namespace attest
