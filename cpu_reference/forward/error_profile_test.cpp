#include "cpu_reference/forward/error_profile.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace attest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();

template <typename T>
Tensor<T> rows_of(std::int64_t rows, const std::vector<T>& values) {
  Tensor<T> tensor({1, 1, rows, static_cast<std::int64_t>(values.size()) / rows});
  std::copy(values.begin(), values.end(), tensor.values().begin());
  return tensor;
}

// fp16 in [1, 2) steps by 2^-10. All figures are exact in binary.
TEST(ErrorProfile, ulp_shares_count_steps_from_the_correctly_rounded_result) {
  const double step = std::ldexp(1.0, -10);
  // 1 + 0.75 step rounds to 1 + step: one step away from 1, although only 0.75 of a step is
  // missing.
  const std::vector<double> want{1, 1 + 0.75 * step, 1 + 0.75 * step, 1, 1, 1, 1, 1};
  const auto at = [&](double steps) { return static_cast<float>(1 + steps * step); };
  const std::vector<float> got{1, at(1), 1, at(2), at(4), at(5), at(8), at(9)};
  const ErrorProfile profile = error_profile(rows_of(2, want), rows_of(2, got), ElementType::fp16);
  EXPECT_EQ(profile.value("elements"), 8);
  EXPECT_EQ(profile.value("ulp_0"), 0.25);
  EXPECT_EQ(profile.value("ulp_1"), 0.125);
  EXPECT_EQ(profile.value("ulp_2"), 0.125);
  EXPECT_EQ(profile.value("ulp_3_to_4"), 0.125);
  EXPECT_EQ(profile.value("ulp_5_to_8"), 0.25);
  EXPECT_EQ(profile.value("ulp_more"), 0.125);
  EXPECT_EQ(profile.value("share_within_1_ulp"), 0.375);
  EXPECT_EQ(profile.largest_at, (Shape{0, 0, 1, 3}));
  EXPECT_EQ(profile.largest_got, 1 + 9 * step);
  EXPECT_EQ(profile.largest_want, 1);
  EXPECT_THROW((void)profile.value("error_over_bound_max"), std::logic_error);  // no bound given
}

TEST(ErrorProfile, quantiles_of_error_over_bound_leave_out_elements_without_a_bound) {
  const std::int64_t count = 200;
  std::vector<double> want(count, 0.0), bound(count, 256.0);
  std::vector<float> got;
  for (std::int64_t i = 0; i < count; ++i) got.push_back(static_cast<float>((i * 77) % count + 1));
  const Tensor<double> wanted = rows_of(2, want), limits = rows_of(2, bound);
  const ErrorProfile all = error_profile(wanted, rows_of(2, got), ElementType::fp32, &limits);
  EXPECT_EQ(all.value("vacuous"), 0);
  EXPECT_EQ(all.value("error_over_bound_max"), 200.0 / 256);
  EXPECT_EQ(all.value("error_over_bound_p99"), 198.0 / 256);  // 198 of 200 do not exceed it
  EXPECT_EQ(all.value("error_over_bound_median"), 100.0 / 256);

  // The larger half loses its bound: the quantiles are those of 1 to 100.
  for (std::int64_t i = 0; i < count; ++i) {
    if (got[static_cast<std::size_t>(i)] > 100) bound[static_cast<std::size_t>(i)] = inf;
  }
  const Tensor<double> fewer = rows_of(2, bound);
  const ErrorProfile half = error_profile(wanted, rows_of(2, got), ElementType::fp32, &fewer);
  EXPECT_EQ(half.value("vacuous"), 100);
  EXPECT_EQ(half.value("error_over_bound_max"), 100.0 / 256);
  EXPECT_EQ(half.value("error_over_bound_p99"), 99.0 / 256);
  EXPECT_EQ(half.value("error_over_bound_median"), 50.0 / 256);
}

TEST(ErrorProfile, a_nan_that_should_be_none_is_never_hidden) {
  const Tensor<double> want = rows_of(2, std::vector<double>{1, 1, 1, 1});
  const Tensor<double> bound = rows_of(2, std::vector<double>{1, 1, 1, 1});
  const ErrorProfile profile = error_profile(want, rows_of(2, std::vector<float>{1, 1, nan_f, 9}),
                                             ElementType::fp32, &bound);
  EXPECT_TRUE(std::isnan(profile.value("rmse")));
  EXPECT_EQ(profile.value("ulp_more"), 0.5);
  EXPECT_EQ(profile.value("error_over_bound_max"), inf);
  EXPECT_EQ(profile.largest_at, (Shape{0, 0, 1, 0}));
}

TEST(ErrorProfile, the_floor_is_the_rounding_of_the_exact_answer_whatever_the_kernel_did) {
  const double step = std::ldexp(1.0, -10);
  const std::vector<double> want{1 + 0.25 * step, 1 - 0.125 * step, -2 + 0.25 * step, inf};
  const std::vector<float> far{3, 4, 5, 6};
  const ErrorProfile profile = error_profile(rows_of(2, want), rows_of(2, far), ElementType::fp16);
  // Below 1 a step is half as large, below 2 it is the same: each is off by a quarter or an eighth.
  const double squares = step * step * (1.0 / 16 + 1.0 / 64 + 1.0 / 16);
  EXPECT_DOUBLE_EQ(profile.value("rounded_rmse"), std::sqrt(squares / 4));
  EXPECT_DOUBLE_EQ(profile.value("rounded_mean_signed_error"), step * (-0.25 + 0.125 - 0.25) / 4);
  EXPECT_GT(profile.value("rmse"), profile.value("rounded_rmse"));
}

}  // namespace
}  // namespace attest
