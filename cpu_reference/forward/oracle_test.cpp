#include "cpu_reference/forward/oracle.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

/// One query q = (1, 0, ...), keys (s_j, 0, ...), scale 1: the scores are exactly `scores`.
struct RowWithScores {
  Problem problem;
  Inputs inputs;
};
RowWithScores row_with_scores(const std::vector<float>& scores, std::int64_t head_dim) {
  Problem problem{.query_len = 1,
                  .key_len = static_cast<std::int64_t>(scores.size()),
                  .head_dim = head_dim,
                  .scale = 1.0F};
  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(key_shape(problem)),
                Tensor<float>(key_shape(problem))};
  inputs[forward::q].at(0, 0, 0, 0) = 1;
  for (std::int64_t j = 0; j < problem.key_len; ++j) {
    inputs[forward::k].at(0, 0, j, 0) = scores[static_cast<std::size_t>(j)];
  }
  return {problem, inputs};
}

RowWithScores random_row(std::int64_t keys, std::int64_t head_dim, double magnitude) {
  auto row = row_with_scores(std::vector<float>(static_cast<std::size_t>(keys)), head_dim);
  std::uint64_t stream = 0;
  for (auto* tensor : {&row.inputs[forward::q], &row.inputs[forward::k], &row.inputs[forward::v]}) {
    std::uint64_t index = 0;
    const double size = stream == 0 ? magnitude : 1;
    for (float& x : tensor->values()) {
      x = static_cast<float>(size * random_normal(1, stream, index++));
    }
    ++stream;
  }
  row.problem.scale = default_scale(head_dim);
  return row;
}

TEST(Oracle, SoftmaxOfOneToFourHasTheGoldenValues) {
  auto [problem, inputs] = row_with_scores({1, 2, 3, 4}, 4);
  for (int j = 0; j < 4; ++j)
    inputs[forward::v].at(0, 0, j, j) = 1;  // O is then the row of weights
  const auto row = oracle_row<Quad>(problem, inputs, 0, 0, 0);
  const std::array golden{0.0320586, 0.0871443, 0.2368828, 0.6439143};
  constexpr double half_of_the_last_digit = 0.5e-7;
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_LE(std::abs(static_cast<double>(row.o[c]) - golden[c]), half_of_the_last_digit);
  }
  const auto normaliser = static_cast<double>(exp(Quad(row.lse - 4)));
  EXPECT_LE(std::abs(normaliser - 1.553002), 0.5e-6);
}

TEST(Oracle, ScoresZeroLnTwoLnFourGiveFiveAndSixSevenths) {
  const float ln2 = std::numbers::ln2_v<float>;
  auto [problem, inputs] = row_with_scores({0, ln2, 2 * ln2}, 2);
  const std::array values{1.0F, 0.0F, 0.0F, 1.0F, 1.0F, 1.0F};
  std::copy(values.begin(), values.end(), inputs[forward::v].values().begin());
  const auto row = oracle_row<Quad>(problem, inputs, 0, 0, 0);
  // ln 2 rounded to fp32 changes a log-weight by at most 2^-24 ln 4, hence values in [0, 1] by at
  // most twice that.
  const double allowed = 2 * 0x1p-24 * std::log(4);
  EXPECT_LE(std::abs(static_cast<double>(row.o[0]) - 5.0 / 7), allowed);
  EXPECT_LE(std::abs(static_cast<double>(row.o[1]) - 6.0 / 7), allowed);
  EXPECT_LE(std::abs(static_cast<double>(row.lse) - std::log(7)), allowed);
}

TEST(Oracle, NumbersOf113And256BitsAgreeToTheRoundoffOf113) {
  for (const double magnitude : {1e-20, 1.0, 30.0, 1e5, 1e12}) {
    for (const std::int64_t keys : {1, 2, 17, 101}) {
      const auto [problem, inputs] = random_row(keys, 24, magnitude);
      const auto quad = oracle_row<Quad>(problem, inputs, 0, 0, 0);
      const auto wide = oracle_row<Wide>(problem, inputs, 0, 0, 0);
      // Log-weights differ by the score error of both key and row maximum; sums add one roundoff a
      // term.
      Wide largest = 0;
      for (const Wide& a : wide.absolute_scores) largest = std::max(largest, a);
      const Wide u = ldexp(Wide(1), -113);
      const Wide log_weight = 2 * (24 + 2) * u * largest + 4 * u;
      const Wide relative = 2 * log_weight + (2 * keys + 4) * u;
      for (std::size_t c = 0; c < quad.o.size(); ++c) {
        const Wide difference = abs(Wide(Wide(quad.o[c]) - wide.o[c]));
        EXPECT_TRUE(difference <= 2 * relative * wide.absolute_o[c])
            << magnitude << ' ' << keys << ' ' << difference;
      }
      const Wide difference = abs(Wide(Wide(quad.lse) - wide.lse));
      EXPECT_TRUE(difference <= relative + 2 * u * abs(wide.lse)) << magnitude << ' ' << keys;
    }
  }
}

TEST(Oracle, ScoresPastEveryExponentRangeLeaveTheTopKeyAlone) {
  auto [problem, inputs] = row_with_scores({-1e30F, 1e30F, 3e29F}, 3);
  for (int j = 0; j < 3; ++j) inputs[forward::v].at(0, 0, j, j) = 1;
  const auto quad = oracle_row<Quad>(problem, inputs, 0, 0, 0);
  const auto wide = oracle_row<Wide>(problem, inputs, 0, 0, 0);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_TRUE(quad.o[c] == (c == 1 ? 1 : 0));
    EXPECT_TRUE(wide.o[c] == (c == 1 ? 1 : 0));
  }
  EXPECT_TRUE(quad.lse == Quad(1e30F));
}

TEST(Oracle, ARowWithoutKeysIsZeroWithLseMinusInfinity) {
  auto [problem, inputs] = random_row(5, 8, 1);
  problem.query_len = 7;
  problem.mask = Mask::causal_bottom_right;  // queries 0 and 1 see nothing
  inputs[forward::q] = Tensor<float>(query_shape(problem), 1.0F);
  const auto row = oracle_row<Quad>(problem, inputs, 0, 0, 1);
  for (const Quad& o : row.o) EXPECT_TRUE(o == 0);
  EXPECT_TRUE(isinf(row.lse) && row.lse < 0);
  const auto bound = oracle_bound(problem, inputs, 0, 0, row, PrecisionPlan{});
  for (const Quad& o : bound.o) EXPECT_TRUE(o == 0);
  EXPECT_TRUE(bound.lse == 0);
}

TEST(Oracle, NanInAKeyReachesTheRowsThatSeeItAndNanInAValueItsColumn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto [problem, inputs] = random_row(5, 8, 1);
  problem.query_len = 5;
  problem.mask = Mask::causal_top_left;
  inputs[forward::q] = Tensor<float>(query_shape(problem), 1.0F);
  inputs[forward::k].at(0, 0, 3, 2) = nan;
  inputs[forward::v].at(0, 0, 1, 4) = nan;
  for (std::int64_t query = 0; query < 5; ++query) {
    const auto row = oracle_row<Quad>(problem, inputs, 0, 0, query);
    EXPECT_EQ(isnan(row.lse), query >= 3) << query;
    EXPECT_EQ(isnan(row.o[0]), query >= 3) << query;
    EXPECT_EQ(isnan(row.o[4]), query >= 1) << query;
  }
}

/// Inputs of one entry with the keys that row n sees, and nothing else.
Inputs only_seen(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t n,
                 Problem& alone) {
  const std::vector<std::int64_t> keys = visible_keys_of(problem, b, n);
  alone = problem;
  alone.batch = alone.query_len = 1;
  alone.key_len = static_cast<std::int64_t>(keys.size());
  alone.mask = Mask::none;
  alone.window = {};
  alone.length_seed = alone.padding_seed = 0;
  Inputs seen{Tensor<float>(query_shape(alone)), Tensor<float>(key_shape(alone)),
              Tensor<float>(value_shape(alone))};
  for (std::int64_t h = 0; h < problem.query_heads; ++h) {
    std::ranges::copy(inputs[forward::q].row(b, h, n), seen[forward::q].row(0, h, 0).begin());
  }
  for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const auto to = static_cast<std::int64_t>(j);
      std::ranges::copy(inputs[forward::k].row(b, h, keys[j]),
                        seen[forward::k].row(0, h, to).begin());
      std::ranges::copy(inputs[forward::v].row(b, h, keys[j]),
                        seen[forward::v].row(0, h, to).begin());
    }
  }
  return seen;
}

TEST(Oracle, HiddenKeysCountAsIfTheyWereNotThere) {
  const Problem problem{.batch = 8,
                        .query_heads = 2,
                        .kv_heads = 1,
                        .query_len = 5,
                        .key_len = 11,
                        .head_dim = 3,
                        .value_dim = 2,
                        .mask = Mask::window_bottom_right,
                        .window = {4, 1},
                        .scale = 0.7F,
                        .softcap = 1.5F,
                        .length_seed = 2,
                        .padding_seed = 3};
  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(key_shape(problem)),
                Tensor<float>(value_shape(problem))};
  std::uint64_t stream = 0;
  for (auto* tensor : {&inputs[forward::q], &inputs[forward::k], &inputs[forward::v]}) {
    std::uint64_t index = 0;
    for (float& x : tensor->values()) x = static_cast<float>(random_normal(1, stream, index++));
    ++stream;
  }
  int rows = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t n = 0; n < problem.query_len; ++n) {
      Problem alone;
      const Inputs seen = only_seen(problem, inputs, b, n, alone);
      const auto row = oracle_row<Quad>(problem, inputs, b, 1, n);
      const auto want = oracle_row<Quad>(alone, seen, 0, 1, 0);
      EXPECT_EQ(row.o, want.o);
      EXPECT_EQ(row.lse, want.lse);
      rows += row.keys.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(rows, 8);
}

TEST(Oracle, ASoftcapBendsTheScoresBeforeTheSoftmax) {
  auto [problem, inputs] = row_with_scores({-9, 0, 1, 50}, 4);
  problem.softcap = 2;
  for (int j = 0; j < 4; ++j) inputs[forward::v].at(0, 0, j, j) = 1;
  const auto row = oracle_row<Quad>(problem, inputs, 0, 0, 0);
  const auto weight = [](double s) { return exp(Quad(2 * tanh(Quad(s) / 2))); };
  const Quad sum = weight(-9) + weight(0) + weight(1) + weight(50);
  const Quad few_roundoffs = 16 * std::numeric_limits<Quad>::epsilon();
  EXPECT_LE(abs(Quad(row.o[2] - weight(1) / sum)), few_roundoffs);
  EXPECT_LE(abs(Quad(row.o[3] - weight(50) / sum)), few_roundoffs);
  EXPECT_LE(abs(Quad(row.lse - log(sum))), few_roundoffs);
}

TEST(Oracle, QueryHeadsOfOneGroupReadTheSameKeys) {
  Problem problem{.query_heads = 6, .kv_heads = 2, .key_len = 3, .head_dim = 2, .scale = 1.0F};
  Inputs inputs{Tensor<float>(query_shape(problem), 1.0F), Tensor<float>(key_shape(problem)),
                Tensor<float>(key_shape(problem))};
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t j = 0; j < 3; ++j)
      inputs[forward::v].at(0, h, j, 0) = static_cast<float>(h + 1);
  }
  for (std::int64_t h = 0; h < 6; ++h) {
    const auto row = oracle_row<Wide>(problem, inputs, 0, h, 0);
    // Three weights of 1/3 sum to 1 only up to roundoff.
    const Wide error = abs(Wide(row.o[0] - (h < 3 ? 1 : 2)));
    EXPECT_TRUE(error <= ldexp(Wide(1), -250)) << h;
  }
}

}  // namespace
}  // namespace attest
