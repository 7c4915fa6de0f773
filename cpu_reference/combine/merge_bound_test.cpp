#include "cpu_reference/combine/merge_bound.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/inputs/random.hpp"
#include "cpu_reference/forward/oracle.hpp"

namespace attest {
namespace {

constexpr float no_key = -std::numeric_limits<float>::infinity();

struct PartialRows {
  std::vector<float> lse;
  std::vector<float> o;  ///< [parts, columns]
  std::size_t columns;
};

/// Draws rows of each kind: logits far apart, equal, one dominant, many parts, large, with empty
/// parts. Outputs are of size 2^`exponent`.
PartialRows drawn_parts(std::uint64_t seed, ElementType type, int exponent = 0) {
  const auto uniform = [&](std::uint64_t stream) { return random_uniform(seed, stream, 0); };
  const bool has_many = seed % 16 == 0;
  const auto parts = 1 + random_below(seed, 0, 0, has_many ? 300 : 12);
  PartialRows rows{{}, {}, 3};
  const double centre = seed % 3 == 0 ? 1000 * (uniform(1) - 0.5) : 4 * uniform(1);
  const double spread = std::vector{0.0, 0.01, 2.0, 30.0, 300.0}[seed % 5];
  for (std::int64_t p = 0; p < parts; ++p) {
    const auto index = static_cast<std::uint64_t>(p);
    double lse = centre + spread * (random_uniform(seed, 2, index) - 0.5);
    if (seed % 7 == 0 && p == parts / 2) lse += 12;
    const bool is_empty = seed % 6 == 0 && random_below(seed, 3, index, 3) == 0;
    rows.lse.push_back(is_empty ? no_key : static_cast<float>(lse));
    for (std::size_t c = 0; c < rows.columns; ++c) {
      // Both signs, one sign, and the sizes of an output's subnormals.
      double x = random_normal(seed, 4 + c, index);
      if (c == 1) x = 1 + std::abs(x);
      if (c == 2) x = std::ldexp(x, -static_cast<int>(random_below(seed, 7, index, 24)));
      rows.o.push_back(static_cast<float>(round_to(type, std::ldexp(x, exponent))));
    }
  }
  return rows;
}

/// Errors of an exact result within a relative error. Random directions, or one for the numerator
/// and the other for the normaliser, which is worst for O.
class Adversary {
 public:
  Adversary(std::uint64_t seed, const MergeRoundings& how)
      : seed_(seed), is_biased_(seed % 2 == 0), how_(how) {}

  /// An input, as it is read.
  [[nodiscard]] double read(float x) const {
    const bool is_subnormal = std::abs(static_cast<double>(x)) < fp32_arithmetic.min_normal;
    return how_.flushes_subnormals && is_subnormal ? 0 : static_cast<double>(x);
  }
  [[nodiscard]] double off_by(double exact, double relative, double bias) {
    const double direction = is_biased_ ? bias : 2 * random_uniform(seed_, 20, next_++) - 1;
    const double result = exact * (1 + relative * direction);
    if (!(std::abs(result) < fp32_arithmetic.min_normal)) return result;
    if (how_.flushes_subnormals) return 0;
    const double steps = result / fp32_arithmetic.min_subnormal;
    return std::nearbyint(steps) * fp32_arithmetic.min_subnormal;
  }
  [[nodiscard]] double rounded(double exact, double bias) {
    return off_by(exact, fp32_arithmetic.unit_roundoff, bias);
  }
  [[nodiscard]] double exponential(double difference, double bias) {
    const double x = rounded(difference, -bias);
    if (x == 0 && how_.exp.is_one_at_zero) return 1;
    const double error = how_.exp.relative_error + how_.exp.argument_error * std::abs(x);
    return off_by(std::exp(x), error, bias);
  }

 private:
  std::uint64_t seed_, next_ = 0;
  bool is_biased_;
  const MergeRoundings& how_;
};

struct Merged {
  std::vector<double> o;
  double lse;
};

/// The merge as a kernel does it, with every rounding left to the adversary.
Merged adversarial_merge(const MergeRoundings& how, const PartialRows& rows,
                         const MergedRow<double>& exact, std::uint64_t seed) {
  Adversary adversary(seed, how);
  const float maximum = *std::max_element(rows.lse.begin(), rows.lse.end());
  Merged merged{std::vector<double>(rows.columns, 0), -std::numeric_limits<double>::infinity()};
  if (maximum == no_key) return merged;
  // Each column has its own weights here: the worst ones for it.
  for (std::size_t c = 0; c < rows.columns; ++c) {
    std::vector<double> weights, values;
    for (std::size_t p = 0; p < rows.lse.size(); ++p) {
      if (rows.lse[p] == no_key) continue;
      const double x = adversary.read(rows.o[p * rows.columns + c]);
      const double difference = adversary.read(rows.lse[p]) - adversary.read(maximum);
      weights.push_back(adversary.exponential(difference, x > exact.o[c] ? 1 : -1));
      values.push_back(x);
    }
    double sum = 0;
    for (const double weight : weights) {
      sum = sum == 0 ? weight : adversary.rounded(sum + weight, -1);
    }
    double o = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      double weight = weights[i];
      const double sign = values[i] > 0 ? 1 : -1;
      if (how.divides_weights) weight = adversary.off_by(weight / sum, how.division_error, sign);
      const double product = adversary.rounded(weight * values[i], sign);
      o = i == 0 ? product : adversary.rounded(o + product, o + product > 0 ? 1 : -1);
    }
    if (!how.divides_weights) o = adversary.off_by(o / sum, how.division_error, o > 0 ? 1 : -1);
    merged.o[c] = how.output == ElementType::fp32 ? o : round_to(how.output, o);
    const double logarithm = adversary.off_by(std::log(sum), how.log_error, -1);
    merged.lse = adversary.rounded(adversary.read(maximum) + logarithm, -1);
  }
  return merged;
}

struct WorstRatios {
  double o = 0, lse = 0;
};

/// The largest error over bound of many rows; errors are against 113 bits.
WorstRatios worst_ratios(const MergeRoundings& how, ElementType inputs, std::uint64_t count) {
  WorstRatios worst;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const bool is_half = inputs == ElementType::fp16 || how.output == ElementType::fp16;
    const int exponent = is_half ? 0 : std::vector{0, 0, -130, 100}[seed % 4];
    const PartialRows rows = drawn_parts(seed, inputs, exponent);
    const auto exact = merged_row<Quad>(rows.lse, rows.o, rows.columns);
    const auto row = merged_row<double>(rows.lse, rows.o, rows.columns);
    const auto bound = merge_bound(how, rows.lse, rows.o, row);
    const Merged got = adversarial_merge(how, rows, row, seed);
    const auto ratio = [](double error, double allowed) {
      return error == 0 ? 0 : error / allowed;
    };
    for (std::size_t c = 0; c < rows.columns; ++c) {
      const double error = std::abs(static_cast<double>(Quad(got.o[c]) - exact.o[c]));
      EXPECT_LE(error, bound.o[c]) << seed << ' ' << c;
      worst.o = std::max(worst.o, ratio(error, bound.o[c]));
    }
    if (row.lse == -std::numeric_limits<double>::infinity()) {
      EXPECT_EQ(got.lse, row.lse);
      EXPECT_EQ(bound.lse, 0);
      continue;
    }
    const double error = std::abs(static_cast<double>(Quad(got.lse) - exact.lse));
    EXPECT_LE(error, bound.lse) << seed;
    worst.lse = std::max(worst.lse, ratio(error, bound.lse));
  }
  return worst;
}

std::vector<MergeRoundings> all_merges() {
  std::vector<MergeRoundings> all;
  for (const bool divides_weights : {false, true}) {
    all.push_back(
        {.division_error = 0x1p-24, .log_error = 0x1p-23, .divides_weights = divides_weights});
    all.push_back({.exp = ex2_approx(),
                   .division_error = 0x1p-22,
                   .log_error = 0x1p-22,
                   .divides_weights = divides_weights,
                   .flushes_subnormals = true});
    ExpMethod inexact = polynomial_exp2(3);
    inexact.is_one_at_zero = false;
    all.push_back({.exp = inexact,
                   .division_error = 0x1p-24,
                   .log_error = 0x1p-23,
                   .divides_weights = divides_weights});
  }
  return all;
}

TEST(MergeBound, no_merge_that_rounds_adversarially_exceeds_it_and_some_come_near) {
  int number = 0;
  for (MergeRoundings how : all_merges()) {
    for (const ElementType output : all_element_types()) {
      how.output = output;
      for (const ElementType inputs : {ElementType::fp32, output}) {
        const WorstRatios worst = worst_ratios(how, inputs, 500);
        EXPECT_GT(worst.o, 0.1) << number << ' ' << format_of(output).name;
        EXPECT_GT(worst.lse, 0.1) << number << ' ' << format_of(output).name;
      }
    }
    ++number;
  }
}

/// Merge in fp32 as a kernel would form it, weights e^(lse - largest); `weigh` may be wrong.
Merged fp32_merge(const PartialRows& rows, const std::function<float(float)>& weigh,
                  bool drops_the_last = false) {
  const float maximum = *std::max_element(rows.lse.begin(), rows.lse.end());
  Merged merged{std::vector<double>(rows.columns, 0), maximum};
  if (maximum == no_key) return merged;
  float sum = 0;
  std::vector<float> o(rows.columns, 0);
  const std::size_t parts = rows.lse.size() - (drops_the_last && rows.lse.size() > 1 ? 1 : 0);
  for (std::size_t p = 0; p < parts; ++p) {
    if (rows.lse[p] == no_key) continue;
    const float weight = weigh(rows.lse[p] - maximum);
    sum += weight;
    for (std::size_t c = 0; c < o.size(); ++c) {
      o[c] = std::fma(weight, rows.o[p * o.size() + c], o[c]);
    }
  }
  for (std::size_t c = 0; c < o.size(); ++c) merged.o[c] = o[c] / sum;
  merged.lse = maximum + std::log(sum);
  return merged;
}

/// True if O or LSE of some row is outside its bound.
bool is_caught(const std::function<Merged(const PartialRows&)>& merge, std::uint64_t seed) {
  const MergeRoundings how{.division_error = 0x1p-24, .log_error = 0x1p-23};
  const PartialRows rows = drawn_parts(seed, ElementType::fp32);
  const auto exact = merged_row<double>(rows.lse, rows.o, rows.columns);
  const auto bound = merge_bound(how, rows.lse, rows.o, exact);
  const Merged got = merge(rows);
  bool is_right = got.lse == exact.lse || std::abs(got.lse - exact.lse) <= bound.lse;
  for (std::size_t c = 0; c < rows.columns; ++c) {
    is_right = is_right && std::abs(got.o[c] - exact.o[c]) <= bound.o[c];
  }
  return !is_right;
}

float library(float x) {
  return std::exp(x);
}

TEST(MergeBound, a_merge_in_fp32_is_within_it) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    EXPECT_FALSE(is_caught([](const PartialRows& rows) { return fp32_merge(rows, library); }, seed))
        << seed;
  }
}

TEST(MergeBound, a_merge_in_the_wrong_base_or_without_its_last_part_is_not) {
  int base = 0, last = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto in_base_2 = [](float x) { return std::exp2(x); };
    base += is_caught([&](const PartialRows& rows) { return fp32_merge(rows, in_base_2); }, seed);
    last +=
        is_caught([](const PartialRows& rows) { return fp32_merge(rows, library, true); }, seed);
  }
  // Of equal LSE the base does not matter; a part that weighs nothing is not missed.
  EXPECT_GT(base, 500);
  EXPECT_GT(last, 500);
}

TEST(MergeBound, a_part_of_lse_minus_infinity_weighs_nothing_whatever_its_o_holds) {
  const MergeRoundings how;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> lse{1, 2}, o{3, 4}, with_empty{1, no_key, 2}, with_nan{3, nan, 4};
  const auto row = merged_row<double>(lse, o, 1);
  const auto same = merged_row<double>(with_empty, with_nan, 1);
  EXPECT_EQ(row.o, same.o);
  EXPECT_EQ(row.lse, same.lse);
  EXPECT_EQ(merge_bound(how, lse, o, row).o, merge_bound(how, with_empty, with_nan, same).o);
  EXPECT_EQ(merge_bound(how, lse, o, row).lse, merge_bound(how, with_empty, with_nan, same).lse);
}

TEST(MergeBound, a_row_of_empty_parts_or_of_none_must_be_exactly_0_and_minus_infinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& lse : {std::vector<float>{}, std::vector{no_key, no_key}}) {
    const std::vector<float> o(2 * lse.size(), nan);
    const auto row = merged_row<double>(lse, o, 2);
    EXPECT_EQ(row.o, (std::vector<double>{0, 0}));
    EXPECT_EQ(row.lse, -std::numeric_limits<double>::infinity());
    const auto bound = merge_bound({}, lse, o, row);
    EXPECT_EQ(bound.o, (std::vector<double>{0, 0}));
    EXPECT_EQ(bound.lse, 0);
  }
}

TEST(MergeBound, of_a_row_with_a_nan_or_an_infinity_nothing_finite_is_claimed) {
  const float infinite = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto expect_nothing = [](const std::vector<float>& lse, const std::vector<float>& o) {
    const auto row = merged_row<double>(lse, o, 2);
    const auto bound = merge_bound({}, lse, o, row);
    for (const double x : {row.o[0], row.o[1], row.lse, bound.o[0], bound.o[1], bound.lse}) {
      EXPECT_TRUE(std::isnan(x));
    }
  };
  expect_nothing({0, nan}, {1, 1, 1, 1});
  expect_nothing({nan, 0}, {1, 1, 1, 1});
  expect_nothing({0, infinite}, {1, 1, 1, 1});
  expect_nothing({0, 0}, {1, nan, 1, 1});
  expect_nothing({0, -1000}, {1, 1, infinite, 1});
  expect_nothing({0, no_key, 0}, {1, 1, 1, 1, -infinite, 1});
}

TEST(MergeBound, where_the_sum_of_weighted_values_can_overflow_it_is_infinite) {
  const std::vector<float> lse{0, 0}, o{3e38F, 3e38F};
  const auto row = merged_row<double>(lse, o, 1);
  EXPECT_EQ(merge_bound({}, lse, o, row).o[0], std::numeric_limits<double>::infinity());
  // Divided weights add up to 1.
  const MergeRoundings divided{.divides_weights = true};
  EXPECT_LT(merge_bound(divided, lse, o, row).o[0], 3e38);
  const MergeRoundings half{.divides_weights = true, .output = ElementType::fp16};
  EXPECT_EQ(merge_bound(half, lse, o, row).o[0], std::numeric_limits<double>::infinity());
}

TEST(MergeBound, a_weight_that_is_flushed_to_0_is_within_it_however_large_its_output) {
  const MergeRoundings how{.flushes_subnormals = true};
  // e^-87.4 is below 2^-126: a kernel that flushes gives 0.
  const std::vector<float> lse{0, -87.4F}, o{0, 1e36F};
  const auto row = merged_row<double>(lse, o, 1);
  const auto bound = merge_bound(how, lse, o, row);
  EXPECT_LE(row.o[0], bound.o[0]);
  EXPECT_GT(row.o[0], 0.1 * bound.o[0]);
}

TEST(MergeBound, in_double_it_is_what_it_is_in_113_bits) {
  const MergeRoundings how{.exp = ex2_approx()};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const PartialRows rows = drawn_parts(seed, ElementType::fp32);
    const auto row = merged_row<double>(rows.lse, rows.o, rows.columns);
    const auto bound = merge_bound(how, rows.lse, rows.o, row);
    const auto exact = merged_row<Quad>(rows.lse, rows.o, rows.columns);
    const auto exact_bound = merge_bound(how, rows.lse, rows.o, exact);
    for (std::size_t c = 0; c < rows.columns; ++c) {
      // The slack is there for this difference.
      EXPECT_LE(bound.o[c], evaluation_slack * static_cast<double>(exact_bound.o[c]));
      EXPECT_LE(static_cast<double>(exact_bound.o[c]), evaluation_slack * bound.o[c]);
    }
    EXPECT_LE(bound.lse, evaluation_slack * static_cast<double>(exact_bound.lse));
    EXPECT_LE(static_cast<double>(exact_bound.lse), evaluation_slack * bound.lse);
  }
}

}  // namespace
}  // namespace attest
