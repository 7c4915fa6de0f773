#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/inputs/random.hpp"
#include "gpu/primitives/elementary_error.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> on_the_executor(Elementary f, const std::vector<float>& x) {
  simt::SimtDevice device;
  const TestBuffer<float> in(device, "x", x), out(device, "y", std::vector<float>(x.size()));
  launch_elementary(device, f, in.data(), out.data(), static_cast<int>(x.size()));
  EXPECT_TRUE(device.take_findings().empty());
  return out.read();
}

/// `count` numbers from `low` to `high`, neighbours at equal distances of their bits: every size
/// and every significand alike.
std::vector<float> spread(float low, float high, std::int64_t count) {
  const auto first = std::bit_cast<std::uint32_t>(low), last = std::bit_cast<std::uint32_t>(high);
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto room = static_cast<std::int64_t>(last - first) + 1;
    const std::int64_t begin = room * i / count, end = room * (i + 1) / count;
    const std::int64_t step =
        random_below(31, 0, static_cast<std::uint64_t>(i), std::max<std::int64_t>(1, end - begin));
    x.push_back(std::bit_cast<float>(first + static_cast<std::uint32_t>(begin + step)));
  }
  return x;
}

/// Largest |y - f(x)| / |f(x)|.
template <typename F>
double worst_relative_error(Elementary elementary, const std::vector<float>& x, const F& f) {
  const std::vector<float> y = on_the_executor(elementary, x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = f(static_cast<double>(x[i]));
    const double error = want == y[i] ? 0 : std::abs(y[i] - want) / std::abs(want);
    worst = error <= worst ? worst : error;  // a NaN stays
  }
  return worst;
}

TEST(NaturalLog, IsWithinItsErrorOnAllPositiveNumbers) {
  const auto log = [](double x) { return std::log(x); };
  const float smallest = std::numeric_limits<float>::denorm_min();
  const double everywhere = worst_relative_error(
      Elementary::natural_log, spread(smallest, std::numeric_limits<float>::max(), 300'000), log);
  const double near_one =
      worst_relative_error(Elementary::natural_log, spread(0.5F, 2.0F, 300'000), log);
  RecordProperty("worst", std::to_string(std::max(everywhere, near_one) * 0x1p24));
  EXPECT_LE(everywhere, ln_error);
  EXPECT_LE(near_one, ln_error);
  EXPECT_GT(std::max(everywhere, near_one), ln_error / 2) << "the declared error is too large";
}

TEST(NaturalLog, KnowsTheEnds) {
  const std::vector<float> y =
      on_the_executor(Elementary::natural_log, {0.0F, 1.0F, infinity, nan});
  EXPECT_EQ(y[0], -infinity);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y[1]), 0U);
  EXPECT_EQ(y[2], infinity);
  EXPECT_TRUE(std::isnan(y[3]));
}

TEST(Tanh, IsWithinItsErrorOnAllNumbers) {
  const auto tanh = [](double x) { return std::tanh(x); };
  double worst = 0;
  for (const auto& [low, high] : {std::pair{0x1p-149F, 0.55F}, {0.4F, 1.0F}, {1.0F, 100.0F}}) {
    worst =
        std::max(worst, worst_relative_error(Elementary::tanh, spread(low, high, 300'000), tanh));
  }
  RecordProperty("worst", std::to_string(worst * 0x1p24));
  EXPECT_LE(worst, tanh_error);
  EXPECT_GT(worst, tanh_error / 4) << "the declared error is too large";
}

TEST(Tanh, IsOddAndNeverAboveOne) {
  const std::vector<float> x = spread(0x1p-149F, infinity, 100'000);
  std::vector<float> negative(x);
  for (float& value : negative) value = -value;
  const std::vector<float> up = on_the_executor(Elementary::tanh, x);
  const std::vector<float> down = on_the_executor(Elementary::tanh, negative);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(up[i], 1.0F) << x[i];
    ASSERT_EQ(std::bit_cast<std::uint32_t>(-up[i]), std::bit_cast<std::uint32_t>(down[i])) << x[i];
  }
}

TEST(Tanh, KnowsTheEnds) {
  const std::vector<float> y =
      on_the_executor(Elementary::tanh, {0.0F, -0.0F, infinity, -infinity, nan});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y[0]), 0U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y[1]), 0x80000000U);
  EXPECT_EQ(y[2], 1.0F);
  EXPECT_EQ(y[3], -1.0F);
  EXPECT_TRUE(std::isnan(y[4]));
}

}  // namespace
}  // namespace attest
