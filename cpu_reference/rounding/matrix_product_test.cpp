#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "cpu_reference/rounding/split_product.hpp"

namespace attest {
namespace {

constexpr Accumulation sm80{Accumulation::Kind::tensor_core, 8, 24};
constexpr Accumulation sm90{Accumulation::Kind::tensor_core, 16, 25};

/// c + sum of left[t] * right[t], one lane.
float dot(const Accumulation& accumulation, float c, const std::vector<float>& left,
          const std::vector<float>& right, ElementType type = ElementType::bf16) {
  const ProductOperand operand(right, 1, type);
  std::vector<float> sum{c};
  accumulate_product(accumulation, left, type, operand, 0, sum);
  return sum[0];
}

float ones_times(const Accumulation& accumulation, float c, const std::vector<float>& right) {
  return dot(accumulation, c, std::vector<float>(right.size(), 1.0F), right);
}

TEST(TensorCoreModel, the_facts_probed_on_an_h200_hold) {
  EXPECT_EQ(ones_times(sm90, 1.0F, std::vector<float>(4, 0x1p-25F)), 1.0F + 0x1p-23F);
  EXPECT_EQ(ones_times(sm90, 1.0F, std::vector<float>(8, 0x1p-26F)), 1.0F);
  EXPECT_EQ(ones_times(sm90, 1.0F, std::vector<float>(7, 0x1p-25F)), 1.0F + 0x1p-23F);
  EXPECT_EQ(ones_times(sm90, 1.0F, std::vector<float>(8, 0x1p-25F)), 1.0F + 0x1p-22F);
}

TEST(TensorCoreModel, sm_80_keeps_one_bit_less) {
  EXPECT_EQ(ones_times(sm80, 1.0F, std::vector<float>(8, 0x1p-25F)), 1.0F);
  EXPECT_EQ(ones_times(sm80, 1.0F, std::vector<float>(2, 0x1p-24F)), 1.0F + 0x1p-23F);
}

TEST(TensorCoreModel, terms_beyond_one_step_meet_a_truncated_sum) {
  // Fourteen terms of 2^-25 make 3.5 * 2^-23: one cut leaves three. In two steps of seven, each
  // adds 1.75 * 2^-23 and is cut to one.
  Accumulation steps_of_seven = sm90;
  steps_of_seven.fused_terms = 7;
  const std::vector<float> terms(14, 0x1p-25F);
  EXPECT_EQ(ones_times(sm90, 1.0F, terms), 1.0F + 3 * 0x1p-23F);
  EXPECT_EQ(ones_times(steps_of_seven, 1.0F, terms), 1.0F + 2 * 0x1p-23F);
}

TEST(TensorCoreModel, sums_of_codes_stop_at_16384) {
  const auto sum_of_ones = [](std::size_t count) {
    return dot(hopper_fp8(), 0, std::vector<float>(count, 1.0F), std::vector<float>(count, 1.0F),
               ElementType::e4m3);
  };
  EXPECT_EQ(sum_of_ones(8191), 8191.0F);
  EXPECT_EQ(sum_of_ones(16384), 16384.0F);
  EXPECT_EQ(sum_of_ones(32768), 16384.0F);  // attention of equal weights is then 0.5, not 1
}

TEST(TensorCoreModel, truncation_is_toward_zero_for_both_signs) {
  EXPECT_EQ(ones_times(sm90, -1.0F, std::vector<float>(7, -0x1p-25F)), -1.0F - 0x1p-23F);
  // 1 - 2^-26: the term lies below the kept bits, so it is lost and the sum stays 1.
  EXPECT_EQ(ones_times(sm90, 1.0F, {-0x1p-26F}), 1.0F);
  EXPECT_EQ(ones_times(sm90, 1.0F, {-0x1p-25F, -0x1p-25F, -0x1p-25F}), 1.0F - 0x1p-23F);
}

TEST(TensorCoreModel, the_exponent_of_a_product_is_not_normalised) {
  // 1.5 * 1.5 = 2.25 is aligned as 2^0, so eight terms of 2^-25 count and make one fp32 ulp, 2^-22.
  const std::vector<float> left{1.5F, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<float> right{1.5F,     0x1p-25F, 0x1p-25F, 0x1p-25F, 0x1p-25F,
                                 0x1p-25F, 0x1p-25F, 0x1p-25F, 0x1p-25F};
  EXPECT_EQ(dot(sm90, 0.0F, left, right), 2.25F + 0x1p-22F);
  // The same value as a normalised addend 2.25 = 2^1 * 1.125 pushes those terms out.
  EXPECT_EQ(ones_times(sm90, 2.25F, std::vector<float>(8, 0x1p-25F)), 2.25F);
}

TEST(TensorCoreModel, zero_operands_do_not_take_part_in_the_alignment) {
  EXPECT_EQ(dot(sm90, 0.0F, {0.0F, 1.0F}, {0x1p100F, 0x1p-120F}), 0x1p-120F);
  EXPECT_EQ(dot(sm90, 0.0F, {0.0F}, {0x1p100F}), 0.0F);
}

TEST(TensorCoreModel, subnormals_of_both_formats_are_kept) {
  EXPECT_EQ(dot(sm90, 0.0F, {0x1p-24F}, {1.0F}, ElementType::fp16), 0x1p-24F);
  EXPECT_EQ(dot(sm90, 0.0F, {0x1p-133F}, {1.0F}, ElementType::bf16), 0x1p-133F);
  EXPECT_EQ(dot(sm90, 0x1p-149F, {0.0F}, {1.0F}), 0x1p-149F);
  // Whatever the terms, bits below 2^(-133 - 25) are lost.
  EXPECT_EQ(dot(sm90, 0.0F, {0x1p-80F, 0x1p-80F}, {0x1p-69F, -0x1p-79F}), 0x1p-149F);
  // fp16 subnormals are aligned at 2^-14: against 2^-14 - 2^-24 the product 2^-24 * 2^-16 is cut
  // off.
  EXPECT_EQ(dot(sm90, 0.0F, {0x1p-24F, 0x1p-24F}, {1.0F, 0x1p-16F}, ElementType::fp16), 0x1p-24F);
}

TEST(TensorCoreModel, there_is_one_zero_and_one_nan) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  EXPECT_EQ(bits(dot(sm90, -0.0F, {-0.0F}, {1.0F})), 0U);
  EXPECT_EQ(bits(dot(sm90, 0.0F, {-0x1p-80F}, {0x1p-80F})), 0U);
  EXPECT_EQ(bits(dot(sm90, -std::nanf("7"), {1.0F}, {1.0F})), 0x7fffffffU);
}

TEST(TensorCoreModel, nan_and_infinity_reach_their_own_lane_only) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan_value = std::numeric_limits<float>::quiet_NaN();
  const ProductOperand operand({1, nan_value, infinity, 0x1p-25F}, 4, ElementType::bf16);
  std::vector<float> sum(4, 1.0F);
  const float left = 1.0F;
  accumulate_product(sm90, {&left, 1}, ElementType::bf16, operand, 0, sum);
  EXPECT_EQ(sum[0], 2.0F);
  EXPECT_TRUE(std::isnan(sum[1]));
  EXPECT_EQ(sum[2], infinity);
  EXPECT_EQ(sum[3], 1.0F);
  EXPECT_EQ(dot(sm90, 0.0F, {0x1p100F}, {0x1p100F}), infinity);
  EXPECT_EQ(dot(sm90, 0.0F, {-0x1p100F}, {0x1p100F}), -infinity);
}

/// One step of the model in 64-bit long double, one lane, term by term: slow and obvious.
float slow_step(const Accumulation& accumulation, float c, const std::vector<float>& left,
                const std::vector<float>& right, int smallest) {
  const auto exponent_of = [](float x, int least) {
    return x == 0.0F ? -100000 : std::max(std::ilogb(x), least);
  };
  int largest = std::max(exponent_of(c, -126), -133);
  for (std::size_t t = 0; t < left.size(); ++t) {
    largest = std::max(largest, exponent_of(left[t], smallest) + exponent_of(right[t], smallest));
  }
  long double total = 0;
  const auto add = [&](long double term) {
    total += std::trunc(std::ldexp(term, accumulation.fraction_bits - largest));
  };
  add(static_cast<long double>(c));
  for (std::size_t t = 0; t < left.size(); ++t) {
    add(static_cast<long double>(left[t]) * static_cast<long double>(right[t]));
  }
  const long double value = std::ldexp(total, largest - accumulation.fraction_bits);
  if (value == 0) return 0.0F;
  const int exponent = std::max(std::ilogb(value), -126);
  const long double cut = std::ldexp(std::trunc(std::ldexp(value, 23 - exponent)), exponent - 23);
  return static_cast<float>(cut);
}

TEST(TensorCoreModel, random_sums_equal_a_term_by_term_model) {
  for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
    const int smallest = std::ilogb(format_of(type).min_normal);
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      const Accumulation& accumulation = seed % 2 == 0 ? sm80 : sm90;
      const auto lanes = 1 + random_below(seed, 0, 0, 70);
      const auto terms = 1 + random_below(seed, 0, 1, 40);
      const auto draw = [&](std::uint64_t stream, std::uint64_t index) {
        const double size =
            std::exp2(static_cast<double>(random_below(seed, stream, index, 24) - 12));
        return static_cast<float>(round_to(type, size * random_normal(seed, stream + 1, index)));
      };
      std::vector<float> left, right;
      for (std::int64_t i = 0; i < terms; ++i)
        left.push_back(draw(1, static_cast<std::uint64_t>(i)));
      for (std::int64_t i = 0; i < terms * lanes; ++i) {
        right.push_back(draw(3, static_cast<std::uint64_t>(i)));
      }
      std::vector<float> sum(static_cast<std::size_t>(lanes), seed % 3 == 0 ? 0.0F : 0.75F);
      std::vector<float> want = sum;
      accumulate_product(accumulation, left, type, ProductOperand(right, lanes, type), 0, sum);
      for (std::int64_t i = 0; i < lanes; ++i) {
        for (std::int64_t t = 0; t < terms; t += accumulation.fused_terms) {
          std::vector<float> a, b;
          for (std::int64_t s = t; s < std::min(t + accumulation.fused_terms, terms); ++s) {
            a.push_back(left[static_cast<std::size_t>(s)]);
            b.push_back(right[static_cast<std::size_t>(s * lanes + i)]);
          }
          float& c = want[static_cast<std::size_t>(i)];
          c = slow_step(accumulation, c, a, b, smallest);
        }
      }
      EXPECT_EQ(sum, want) << "seed " << seed;
    }
  }
}

TEST(TensorCoreModel, a_lane_alone_has_the_bits_that_it_has_beside_others) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  constexpr std::int64_t lanes = 27;
  for (const ElementType type :
       {ElementType::fp32, ElementType::fp16, ElementType::bf16, ElementType::e4m3}) {
    // Lanes as large as each other, and far apart: up to and beyond what fp32 holds.
    for (const std::int64_t range : {0, 40, 270}) {
      for (std::uint64_t seed = 0; seed < 150; ++seed) {
        Accumulation accumulation = seed % 3 == 0 ? sm80 : seed % 3 == 1 ? sm90 : hopper_fp8();
        if (seed % 5 == 0) accumulation.fraction_bits = 28;
        const auto draw = [&](std::uint64_t stream, std::int64_t i, std::int64_t lane) {
          const auto index = static_cast<std::uint64_t>(i);
          const std::int64_t kind = random_below(seed, stream, index, 1000);
          if (kind == 0) return std::numeric_limits<float>::infinity();
          if (kind < 80) return kind < 40 ? -0.0F : 0.0F;
          const std::int64_t exponent =
              lane * range / lanes - range / 2 + random_below(seed, stream + 1, index, 20);
          const double value =
              random_normal(seed, stream + 2, index) * std::exp2(static_cast<double>(exponent));
          return static_cast<float>(seed % 4 == 0 ? value : round_to(type, value));
        };
        std::vector<float> left, right, sum, alone(1);
        const std::int64_t terms = 1 + random_below(seed, 9, 0, 40);
        for (std::int64_t t = 0; t < terms; ++t) left.push_back(draw(10, t, lanes / 2));
        for (std::int64_t i = 0; i < terms * lanes; ++i) right.push_back(draw(20, i, i % lanes));
        // Whole lanes of zeros too.
        for (std::int64_t t = 0; t < terms; ++t)
          for (std::int64_t i = 9; i < 12; ++i) right[static_cast<std::size_t>(t * lanes + i)] = 0;
        for (std::int64_t i = 0; i < lanes; ++i) sum.push_back(i % 2 == 0 ? 0.0F : draw(30, i, i));
        std::vector<float> beside = sum;
        accumulate_product(accumulation, left, type, ProductOperand(right, lanes, type), 0, beside);
        for (std::int64_t i = 0; i < lanes; ++i) {
          std::vector<float> column;
          for (std::int64_t t = 0; t < terms; ++t)
            column.push_back(right[static_cast<std::size_t>(t * lanes + i)]);
          alone[0] = sum[static_cast<std::size_t>(i)];
          accumulate_product(accumulation, left, type, ProductOperand(column, 1, type), 0, alone);
          ASSERT_EQ(bits(beside[static_cast<std::size_t>(i)]), bits(alone[0]))
              << "range " << range << ", seed " << seed << ", lane " << i;
        }
      }
    }
  }
}

TEST(TensorCoreModel, parameters_outside_the_model_are_refused) {
  EXPECT_THROW(ones_times({Accumulation::Kind::tensor_core, 0, 24}, 0, {1}), InvalidInput);
  EXPECT_THROW(ones_times({Accumulation::Kind::tensor_core, 65, 24}, 0, {1}), InvalidInput);
  EXPECT_THROW(ones_times({Accumulation::Kind::tensor_core, 8, 0}, 0, {1}), InvalidInput);
  EXPECT_THROW(ones_times({Accumulation::Kind::tensor_core, 8, 29}, 0, {1}), InvalidInput);
}

TEST(FmaProducts, each_term_rounds_once_to_nearest) {
  EXPECT_EQ(ones_times({}, 1.0F, std::vector<float>(4, 0x1p-25F)), 1.0F);
  EXPECT_EQ(ones_times({}, 1.0F, {3 * 0x1p-25F}), 1.0F + 0x1p-23F);
}

}  // namespace
}  // namespace attest
