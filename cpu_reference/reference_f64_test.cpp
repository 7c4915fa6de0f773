#include "cpu_reference/reference_f64.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/error.hpp"
#include "core/random.hpp"
#include "cpu_reference/oracle.hpp"

namespace attest {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

/// Fills q, k, v with value(tensor, index), rounded to the problem's element type.
Inputs fill_inputs(const Problem& problem,
                   const std::function<double(std::uint64_t, std::uint64_t)>& value) {
  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(key_shape(problem)),
                Tensor<float>(value_shape(problem))};
  std::uint64_t tensor = 0;
  for (auto* values : {&inputs.q, &inputs.k, &inputs.v}) {
    std::uint64_t index = 0;
    for (float& x : values->values()) {
      x = static_cast<float>(round_to(problem.element_type, value(tensor, index++)));
    }
    ++tensor;
  }
  return inputs;
}
Inputs normal_inputs(const Problem& problem, double q_size = 1, double v_size = 1) {
  return fill_inputs(problem, [=](std::uint64_t tensor, std::uint64_t index) {
    return (tensor == 0 ? q_size : tensor == 2 ? v_size : 1) * random_normal(3, tensor, index);
  });
}

PrecisionPlan plan_for(const Problem& problem) {
  PrecisionPlan plan;
  plan.blocks = 3;
  plan.normaliser_chain = std::max<std::int64_t>(problem.key_len, 1);
  return plan;
}

void expect_certified(const Problem& problem, const Inputs& inputs, const std::string& what) {
  const Answer answer = exact_answer(problem, inputs, plan_for(problem));
  const Certificate certificate = certify_rows(
      problem, inputs, answer, 5, static_cast<int>(std::min<std::int64_t>(problem.rows(), 12)));
  EXPECT_TRUE(certificate.holds())
      << what << ' ' << to_string(problem) << ": " << certificate.worst_o_ratio << ", "
      << certificate.worst_lse_ratio;
}

std::vector<Problem> odd_problems() {
  std::vector<Problem> problems;
  for (const Mask mask : all_masks()) {
    for (const std::int64_t keys : {0, 1, 2, 15, 33, 67}) {
      problems.push_back({.batch = 2,
                          .query_heads = 6,
                          .kv_heads = 2,
                          .query_len = 35,
                          .key_len = keys,
                          .head_dim = 19,
                          .mask = mask,
                          .scale = 0.3F});
    }
    problems.push_back({.query_heads = 2,
                        .kv_heads = 1,
                        .query_len = 1,
                        .key_len = 130,
                        .head_dim = 1,
                        .mask = mask});
    problems.push_back({.query_len = 131, .key_len = 131, .head_dim = 64, .mask = mask});
    for (const float softcap : {0.0F, 0.5F, 30.0F}) {
      problems.push_back({.batch = 7,
                          .query_heads = 2,
                          .kv_heads = 1,
                          .query_len = 70,
                          .key_len = 90,
                          .head_dim = 12,
                          .value_dim = 20,
                          .mask = mask,
                          .softcap = softcap,
                          .length_seed = 5,
                          .padding_seed = softcap > 1 ? 0U : 9U});
    }
    if (is_window(mask)) {
      const std::size_t count = problems.size();
      for (std::size_t i = 0; i < count; ++i) {
        if (problems[i].mask != mask) continue;
        problems.push_back(problems[i]);
        problems.back().window = {.left = 17, .right = static_cast<std::int64_t>(i % 4) - 1};
      }
    }
  }
  return problems;
}

TEST(ReferenceF64, StaysWithinItsOwnErrorOnEveryMaskAndOddShape) {
  for (const Problem& problem : odd_problems()) {
    expect_certified(problem, normal_inputs(problem), "normal");
  }
}

TEST(ReferenceF64, StaysWithinItsOwnErrorOnAdversarialInputs) {
  const Problem problem{.query_len = 9,
                        .key_len = 53,
                        .head_dim = 32,
                        .mask = Mask::causal_bottom_right,
                        .scale = default_scale(32)};
  for (const double size : {1e-30, 1e-4, 30.0, 1e5, 1e9, 1e14, 1e20, 1e30}) {
    expect_certified(problem, normal_inputs(problem, size), "logits");
    expect_certified(problem, normal_inputs(problem, 1, size), "values");
  }
  expect_certified(problem, fill_inputs(problem, [](auto, auto) { return 1.5; }), "all equal");
  expect_certified(problem,
                   fill_inputs(problem,
                               [](auto tensor, std::uint64_t i) {
                                 const double big =
                                     i % 2 == 0 ? 1e6 : -1e6;  // products of neighbours cancel
                                 return tensor == 0   ? 1e3
                                        : tensor == 1 ? big + random_normal(1, 1, i)
                                                      : random_normal(1, 2, i);
                               }),
                   "cancelling");
  expect_certified(problem,
                   fill_inputs(problem,
                               [](auto tensor, std::uint64_t i) {
                                 return tensor == 1 && i / 32 == 7
                                            ? 4.0
                                            : random_normal(2, tensor, i) * (tensor == 0 ? 3 : 1);
                               }),
                   "one dominant key");
}

TEST(ReferenceF64, OwnErrorIsAFewRoundoffsATermAndNoMore) {
  for (const Problem& problem : odd_problems()) {
    if (problem.key_len == 0) continue;
    const Inputs inputs = normal_inputs(problem);
    const Answer answer = exact_answer(problem, inputs, plan_for(problem));
    double v_max = 0, q_max = 0, k_max = 0;
    for (const float x : inputs.v.values())
      v_max = std::max(v_max, std::abs(static_cast<double>(x)));
    for (const float x : inputs.q.values())
      q_max = std::max(q_max, std::abs(static_cast<double>(x)));
    for (const float x : inputs.k.values())
      k_max = std::max(k_max, std::abs(static_cast<double>(x)));
    const double d = static_cast<double>(problem.head_dim);
    const double n = static_cast<double>(problem.key_len);
    const double a_max = static_cast<double>(problem.scale) * d * q_max * k_max;
    // H_j is at most (d + 3) u A + u D + 2 u with D <= 2 A; the share adds at most 3 (its worst
    // term is at d = 1, and the largest of three ratios stands for all). E1 <= 2 H_j e^(2 H_j) 2
    // max|v|; the sums add 2 n + 8.
    const double roundoffs = 3 * 4 * ((d + 5) * a_max + 2 + 4) + 2 * n + 8;
    for (const double own : answer.o_own_error.values())
      EXPECT_LE(own, roundoffs * 0x1p-53 * v_max * evaluation_slack);
  }
}

TEST(ReferenceF64, OwnErrorIsNearlyReachedWhereFewRoundingsDecide) {
  double worst = 0;
  for (const std::int64_t keys : {2, 3}) {
    for (const double size : {10.0, 100.0}) {
      const Problem problem{.query_len = 400, .key_len = keys, .head_dim = 1, .scale = 0.3F};
      const Inputs inputs = normal_inputs(problem, size);
      const Answer answer = exact_answer(problem, inputs, plan_for(problem));
      const Certificate certificate = certify_rows(problem, inputs, answer, 1, 400);
      EXPECT_TRUE(certificate.holds());
      worst = std::max(worst, certificate.worst_o_ratio);
    }
  }
  // One score has 3 roundings and the estimate counts 6 for the pair, times a share of up to 3.
  EXPECT_GT(worst, 1.0 / 18);
}

TEST(ReferenceF64, BoundIncludesTheOwnErrorHoweverLarge) {
  // Scores of 1e20 leave double no correct digit in a weight: both errors are then the spread of
  // the values.
  const Problem problem{.query_len = 5, .key_len = 20, .head_dim = 16};
  const Inputs inputs = normal_inputs(problem, 1e20);
  const Answer answer = exact_answer(problem, inputs, plan_for(problem));
  for (std::int64_t i = 0; i < answer.o.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_GT(answer.o_own_error.values()[at], 0.01);
    EXPECT_GT(answer.o_bound.values()[at], 1.9 * answer.o_own_error.values()[at]);
  }
}

TEST(ReferenceF64, BoundIsThatOfTheOracle) {
  std::vector<Problem> problems = odd_problems();
  for (std::size_t i = 0; i < problems.size(); ++i) {
    problems[i].element_type = all_element_types()[i % 3];
  }
  for (const Problem& problem : problems) {
    for (const double size : {0.01, 1.0, 20.0, 3e3}) {
      PrecisionPlan plan = plan_for(problem);
      plan.weight_format = problem.element_type;
      plan.sums_rounded_weights = size == 1;
      plan.rescale = size < 1 ? Rescale::none : Rescale::deferred;
      plan.scale_after_dot = size != 20;
      const Inputs inputs = normal_inputs(problem, size);
      const Answer answer = exact_answer(problem, inputs, plan);
      // Sums of n + d positive doubles; log-weights off by their own error, e^x by as much
      // relatively.
      const double allowed = 0x1p-20;
      for (const std::int64_t query :
           {std::int64_t{0}, problem.query_len / 2, problem.query_len - 1}) {
        const std::int64_t b = problem.batch - 1, h = problem.query_heads - 1;
        const auto row = oracle_row<Quad>(problem, inputs, b, h, query);
        const auto bound = oracle_bound(problem, inputs, b, h, row, plan);
        for (std::int64_t c = 0; c < problem.head_dim; ++c) {
          const double want = static_cast<double>(bound.o[static_cast<std::size_t>(c)]);
          const double got =
              answer.o_bound.at(b, h, query, c) - answer.o_own_error.at(b, h, query, c);
          EXPECT_LE(std::abs(got - want), allowed * want)
              << to_string(problem) << ' ' << size << ' ' << query;
        }
        const double want = static_cast<double>(bound.lse);
        const double got =
            answer.lse_bound.at(b, h, query, 0) - answer.lse_own_error.at(b, h, query, 0);
        EXPECT_LE(std::abs(got - want), allowed * want)
            << to_string(problem) << ' ' << size << ' ' << query;
      }
    }
  }
}

TEST(ReferenceF64, ThreadsDoNotChangeABit) {
  const Problem problem{.batch = 2,
                        .query_heads = 3,
                        .kv_heads = 3,
                        .query_len = 70,
                        .key_len = 65,
                        .head_dim = 16,
                        .mask = Mask::causal_top_left};
  const Inputs inputs = normal_inputs(problem);
  const Answer one = exact_answer(problem, inputs, plan_for(problem), 1);
  const Answer many = exact_answer(problem, inputs, plan_for(problem), 5);
  EXPECT_TRUE(std::ranges::equal(one.o.values(), many.o.values()));
  EXPECT_TRUE(std::ranges::equal(one.lse.values(), many.lse.values()));
  EXPECT_TRUE(std::ranges::equal(one.o_bound.values(), many.o_bound.values()));
  EXPECT_TRUE(std::ranges::equal(one.lse_bound.values(), many.lse_bound.values()));
}

TEST(ReferenceF64, NanReachesTheRowsThatSeeItAndChangesNoOther) {
  const Problem problem{.query_heads = 2,
                        .kv_heads = 1,
                        .query_len = 80,
                        .key_len = 80,
                        .head_dim = 16,
                        .mask = Mask::causal_top_left};
  const Inputs clean = normal_inputs(problem);
  Inputs dirty = clean;
  dirty.k.at(0, 0, 50, 3) = nan_value;
  dirty.v.at(0, 0, 20, 5) = std::numeric_limits<float>::infinity();
  dirty.q.at(0, 1, 10, 0) = nan_value;
  const Answer want = exact_answer(problem, clean, plan_for(problem));
  const Answer got = exact_answer(problem, dirty, plan_for(problem));
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t query = 0; query < 80; ++query) {
      const bool row_is_bad = query >= 50 || (h == 1 && query == 10);
      EXPECT_EQ(std::isnan(got.lse.at(0, h, query, 0)), row_is_bad);
      for (std::int64_t c = 0; c < 16; ++c) {
        const bool is_bad = row_is_bad || (c == 5 && query >= 20);
        const double o = got.o.at(0, h, query, c);
        EXPECT_TRUE(is_bad ? std::isnan(o) : o == want.o.at(0, h, query, c))
            << h << ' ' << query << ' ' << c;
      }
    }
  }
  EXPECT_TRUE(certify_rows(problem, dirty, got, 1, 40).holds());
}

TEST(ReferenceF64, EmptyRowsAreExact) {
  const Problem problem{
      .query_len = 5, .key_len = 2, .head_dim = 16, .mask = Mask::causal_bottom_right};
  const Answer answer = exact_answer(problem, normal_inputs(problem), plan_for(problem));
  for (std::int64_t query = 0; query < 3; ++query) {
    EXPECT_EQ(answer.lse.at(0, 0, query, 0), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(answer.lse_bound.at(0, 0, query, 0), 0);
    EXPECT_EQ(answer.o.at(0, 0, query, 7), 0);
    EXPECT_EQ(answer.o_bound.at(0, 0, query, 7), 0);
  }
  EXPECT_GT(answer.o_bound.at(0, 0, 3, 7), 0);
}

TEST(ReferenceF64, ScoresThatFp32CannotHoldMakeTheBoundInfiniteAndNothingElse) {
  const Problem problem{
      .query_len = 3, .key_len = 4, .head_dim = 16, .mask = Mask::none, .scale = 1};
  Inputs inputs = normal_inputs(problem);
  for (std::int64_t c = 0; c < 16; ++c) inputs.q.at(0, 0, 1, c) = 1e38F;
  const Answer answer = exact_answer(problem, inputs, plan_for(problem));
  EXPECT_TRUE(std::isinf(answer.o_bound.at(0, 0, 1, 0)));
  EXPECT_TRUE(std::isinf(answer.lse_bound.at(0, 0, 1, 0)));
  EXPECT_TRUE(std::isfinite(answer.o_bound.at(0, 0, 0, 0)));
  EXPECT_TRUE(std::isfinite(answer.o_own_error.at(0, 0, 1, 0)));
}

TEST(Certificate, FailsWhenAValueIsWrongOrNan) {
  const Problem problem{.query_len = 1, .key_len = 7, .head_dim = 16};
  const Inputs inputs = normal_inputs(problem);
  const Answer good = exact_answer(problem, inputs, plan_for(problem));
  EXPECT_TRUE(certify_rows(problem, inputs, good, 0, 1).holds());
  for (const double wrong :
       {good.o.at(0, 0, 0, 3) + 2 * good.o_own_error.at(0, 0, 0, 3), static_cast<double>(nan_value),
        std::numeric_limits<double>::infinity()}) {
    Answer bad = good;
    bad.o.at(0, 0, 0, 3) = wrong;
    EXPECT_FALSE(certify_rows(problem, inputs, bad, 0, 1).holds()) << wrong;
    bad = good;
    bad.lse.at(0, 0, 0, 0) = wrong;
    EXPECT_FALSE(certify_rows(problem, inputs, bad, 0, 1).holds()) << wrong;
  }
}

TEST(ReferenceF64, ATensorOfAnotherShapeIsRefused) {
  const Problem problem{.query_len = 3, .key_len = 4, .head_dim = 16};
  Inputs inputs = normal_inputs(problem);
  inputs.k = Tensor<float>({1, 1, 5, 16});
  EXPECT_THROW((void)exact_answer(problem, inputs, plan_for(problem)), InvalidInput);
}

}  // namespace
}  // namespace attest
