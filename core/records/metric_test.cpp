#include "core/records/metric.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr float inf_f = std::numeric_limits<float>::infinity();

template <typename T>
Tensor<T> row_of(const std::vector<T>& values) {
  Tensor<T> tensor({1, 1, 1, static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.values().begin());
  return tensor;
}

MetricValue compute(std::string_view name, const std::vector<double>& want,
                    const std::vector<float>& got, ElementType type = ElementType::fp32) {
  return metric(name).compute(row_of(want), row_of(got), type);
}
double value(std::string_view name, const std::vector<double>& want, const std::vector<float>& got,
             ElementType type = ElementType::fp32) {
  return compute(name, want, got, type).value;
}

// All figures here are exact in binary, so equality is the right test.
TEST(Metric, tiny_inputs_have_the_values_worked_out_by_hand) {
  const std::vector<double> want{1, 2, 2, 4};  // norm 5
  const std::vector<float> got{1, 5, 2, 0};    // errors 0, 3, 0, -4: norm 5
  EXPECT_EQ(value("max_abs_error", want, got), 4);
  EXPECT_EQ(value("rmse", want, got), 2.5);  // 5 / sqrt(4)
  EXPECT_EQ(value("relative_l2", want, got), 1);
  EXPECT_EQ(value("mean_signed_error", want, got), -0.25);
  EXPECT_EQ(value("share_within_1_ulp", want, got), 0.5);
}

template <typename T>
Tensor<T> table_of(std::int64_t rows, const std::vector<T>& values) {
  Tensor<T> tensor({1, 1, rows, static_cast<std::int64_t>(values.size()) / rows});
  std::copy(values.begin(), values.end(), tensor.values().begin());
  return tensor;
}

double t_value(std::string_view name, std::int64_t rows, const std::vector<double>& want,
               const std::vector<float>& got) {
  return metric(name).compute(table_of(rows, want), table_of(rows, got), ElementType::fp32).value;
}

TEST(Metric, bias_is_the_mean_error_over_its_standard_error_by_rows) {
  // Row means of the errors 1, 1, 4: mean 2, variance 3, standard error sqrt(3 / 3) = 1.
  const std::vector<double> want{1, 1, 1, 1, 1, 1};
  EXPECT_EQ(t_value("bias", 3, want, {3, 1, 2, 2, 9, 1}), 2);
  EXPECT_EQ(t_value("bias", 3, want, {-1, 1, 0, 0, -7, 1}), -2);  // the sign is that of the error
  EXPECT_EQ(t_value("bias", 2, {0, 0}, {1, 1}), inf);             // no scatter at all
  EXPECT_EQ(t_value("bias", 2, {0, 0}, {0, 0}), 0);
  EXPECT_TRUE(std::isnan(t_value("bias", 1, {0, 0}, {0, 1})));  // one row: no scatter is known
  EXPECT_EQ(t_value("bias", 2, {0, 0}, {0, inf_f}), inf);
}

TEST(Metric, outward_bias_counts_errors_away_from_zero) {
  // Away from zero by row: -1, -1, -4, that is truncation; errors -1, 1, -4.
  EXPECT_EQ(t_value("outward_bias", 3, {5, -5, 9}, {4, -4, 5}), -2);
  EXPECT_EQ(t_value("outward_bias", 3, {5, -5, 9}, {6, -6, 13}), 2);
  EXPECT_EQ(t_value("outward_bias", 2, {0, 0}, {3, -8}), 0);  // nothing is outward of zero
  EXPECT_TRUE(std::isnan(t_value("outward_bias", 2, {0, 0}, {nan_f, 0})));
}

TEST(Metric, the_coordinate_of_the_largest_error_is_reported) {
  const Shape shape{2, 3, 4, 5};
  const Tensor<double> want(shape, 1.0);
  Tensor<float> got(shape, 1.0F);
  got.at(0, 1, 0, 0) = 2.0F;
  got.at(1, 2, 3, 4) = -7.0F;  // the last element
  const MetricValue worst = metric("max_abs_error").compute(want, got, ElementType::fp32);
  EXPECT_EQ(worst.value, 8);
  EXPECT_EQ(worst.at, (Shape{1, 2, 3, 4}));
  got.at(1, 0, 2, 3) = nan_f;
  const MetricValue lost = metric("max_abs_error").compute(want, got, ElementType::fp32);
  EXPECT_TRUE(std::isnan(lost.value));
  EXPECT_EQ(lost.at, (Shape{1, 0, 2, 3}));
}

TEST(Metric, a_nan_on_one_side_makes_every_metric_nan_wherever_it_stands) {
  for (const Metric& m : all_metrics()) {
    for (std::size_t place = 0; place < 3; ++place) {
      std::vector<float> got{1, 9, 1};
      std::vector<double> want{1, 1, 1};
      got[place] = nan_f;
      EXPECT_TRUE(std::isnan(value(m.name, want, got))) << m.name << ", NaN got at " << place;
      want[place] = nan;
      got[place] = 1;
      EXPECT_TRUE(std::isnan(value(m.name, want, got))) << m.name << ", NaN wanted at " << place;
    }
  }
}

TEST(Metric, an_infinity_that_disagrees_is_an_infinite_error) {
  for (const char* name : {"max_abs_error", "rmse", "relative_l2"}) {
    EXPECT_EQ(value(name, {1, 1}, {1, inf_f}), inf) << name;
    EXPECT_EQ(value(name, {1, inf}, {1, 3}), inf) << name;
    EXPECT_EQ(value(name, {1, inf}, {1, -inf_f}), inf) << name;
  }
  EXPECT_EQ(value("mean_signed_error", {1, 1}, {1, -inf_f}), -inf);
  EXPECT_EQ(value("share_within_1_ulp", {1, 1}, {1, inf_f}), 0.5);
}

TEST(Metric, agreeing_nan_and_infinities_are_no_error) {
  const std::vector<double> want{-inf, nan, 2};  // the LSE of an empty row, of a row that sees NaN
  const std::vector<float> got{-inf_f, nan_f, 2};
  for (const char* name :
       {"max_abs_error", "rmse", "relative_l2", "mean_signed_error", "max_ulp_error"})
    EXPECT_EQ(value(name, want, got), 0) << name;
  EXPECT_EQ(value("share_within_1_ulp", want, got), 1);
  // They must not swallow the errors beside them either: |3 - 2| / |2|.
  EXPECT_EQ(value("relative_l2", want, {-inf_f, nan_f, 3}), 0.5);
}

TEST(Metric, nothing_measured_is_nan) {
  for (const Metric& m : all_metrics()) {
    const MetricValue result = compute(m.name, {}, {});
    EXPECT_TRUE(std::isnan(result.value)) << m.name;
    EXPECT_FALSE(result.at.has_value()) << m.name;
  }
}

TEST(Metric, a_zero_reference_gives_zero_or_infinity_never_nan) {
  EXPECT_EQ(value("relative_l2", {0, 0}, {0, -0.0F}), 0);
  EXPECT_EQ(value("relative_l2", {0, 0}, {0, 1}), inf);
}

TEST(Metric, squares_do_not_overflow) {
  constexpr double huge = 0x1p600;
  EXPECT_EQ(value("rmse", {huge, -huge, huge, -huge}, {0, 0, 0, 0}), huge);
  EXPECT_EQ(value("relative_l2", {huge}, {0}), 1);
}

TEST(Metric, a_bias_survives_large_errors_that_cancel) {
  // In plain summation the ones vanish beside 2^60.
  EXPECT_EQ(value("mean_signed_error", {-0x1p60, 0, 0x1p60, 0}, {0, 1, 0, 1}), 0.5);
}

TEST(Metric, different_shapes_are_refused) {
  EXPECT_THROW((void)value("rmse", {1, 2}, {1}), InvalidInput);
  EXPECT_THROW((void)value("share_within_1_ulp", {1}, {1, 2}), InvalidInput);
}

TEST(Metric, an_unknown_name_is_refused_with_the_known_ones) {
  try {
    (void)metric("rsme");
    FAIL() << "accepted";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("relative_l2"), std::string::npos) << error.what();
  }
}

TEST(Metric, names_are_unique_and_each_has_a_unit_and_a_summary) {
  const auto measured = measure_all(row_of<double>({1}), row_of<float>({2}), ElementType::fp32);
  ASSERT_EQ(measured.size(), all_metrics().size());
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Metric& m = all_metrics()[i];
    EXPECT_EQ(&metric(m.name), &m) << "taken twice: " << m.name;
    EXPECT_EQ(measured[i].name, m.name);
    EXPECT_FALSE(m.unit.empty() || m.summary.empty()) << m.name;
  }
}

TEST(UlpDistance, neighbours_are_one_apart_in_every_format) {
  for (const ElementType type : all_element_types()) {
    const ElementFormat& format = format_of(type);
    const double one_up = 1 + 2 * format.unit_roundoff;  // ulp of [1, 2) is 2u
    const double one_down = 1 - format.unit_roundoff;
    EXPECT_EQ(ulp_distance(type, 1, static_cast<float>(one_up)), 1) << format.name;
    EXPECT_EQ(ulp_distance(type, 1, static_cast<float>(one_down)), 1) << format.name;
    EXPECT_EQ(ulp_distance(type, one_down, static_cast<float>(one_up)), 2) << format.name;
    EXPECT_EQ(ulp_distance(type, format.max_finite, inf_f), 1) << format.name;
    const auto tiniest = static_cast<float>(format.min_subnormal);
    EXPECT_EQ(ulp_distance(type, 0, tiniest), 1) << format.name;
    EXPECT_EQ(ulp_distance(type, -format.min_subnormal, tiniest), 2) << format.name;
    EXPECT_EQ(ulp_distance(type, 0.0, -0.0F), 0) << format.name;
  }
}

TEST(UlpDistance, the_reference_is_rounded_to_the_format_first) {
  // Just below the tie 1 + u the correctly rounded result is 1; just above it is 1 + 2u.
  const double u = format_of(ElementType::bf16).unit_roundoff;
  EXPECT_EQ(ulp_distance(ElementType::bf16, 1 + u * 0.99, 1.0F), 0);
  EXPECT_EQ(ulp_distance(ElementType::bf16, 1 + u * 1.01, 1.0F), 1);
}

TEST(UlpDistance, a_value_outside_the_format_is_refused) {
  EXPECT_THROW((void)ulp_distance(ElementType::bf16, 1, 1.0F + 0x1p-20F), InvalidInput);
}

TEST(UlpHistogram, every_element_is_counted_once_in_the_bucket_that_holds_its_distance) {
  std::vector<double> want;
  std::vector<float> got;
  for (int steps = 0; steps <= 9; ++steps) {  // distances 0..9 above 1, once each
    want.push_back(1);
    got.push_back(1.0F + static_cast<float>(steps) * 0x1p-23F);
  }
  want.push_back(nan);
  got.push_back(0);
  const UlpHistogram histogram = ulp_histogram(row_of(want), row_of(got), ElementType::fp32);
  std::vector<std::int64_t> counts;
  for (const auto& bucket : histogram.buckets) counts.push_back(bucket.count);
  EXPECT_EQ(counts, (std::vector<std::int64_t>{1, 1, 1, 2, 4, 1}));  // 0 1 2 3-4 5-8 9-16
  EXPECT_EQ(histogram.buckets.back().first, 9);
  EXPECT_EQ(histogram.buckets.back().last, 16);
  EXPECT_EQ(histogram.disagreeing_nan, 1);
}

}  // namespace
}  // namespace attest
