#include "cpu_reference/forward/reference_f64.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/forward/reference_f64_test.hpp"

namespace attest {
namespace {

TEST(ReferenceF64, BoundIncludesTheOwnErrorHoweverLarge) {
  // Scores of 1e20 leave double no correct digit in a weight: both errors are then the spread of
  // the values.
  const Problem problem{.query_len = 5, .key_len = 20, .head_dim = 16};
  const Inputs inputs = normal_inputs(problem, 1e20);
  const Answer answer = exact_answer(problem, inputs, plan_for(problem));
  for (std::int64_t i = 0; i < answer[forward::o].value.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_GT(answer[forward::o].own_error.values()[at], 0.01);
    EXPECT_GT(answer[forward::o].bound.values()[at],
              1.9 * answer[forward::o].own_error.values()[at]);
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
          const double got = answer[forward::o].bound.at(b, h, query, c) -
                             answer[forward::o].own_error.at(b, h, query, c);
          EXPECT_LE(std::abs(got - want), allowed * want)
              << to_string(problem) << ' ' << size << ' ' << query;
        }
        const double want = static_cast<double>(bound.lse);
        const double got = answer[forward::lse].bound.at(b, h, query, 0) -
                           answer[forward::lse].own_error.at(b, h, query, 0);
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
  EXPECT_TRUE(std::ranges::equal(one[forward::o].value.values(), many[forward::o].value.values()));
  EXPECT_TRUE(
      std::ranges::equal(one[forward::lse].value.values(), many[forward::lse].value.values()));
  EXPECT_TRUE(std::ranges::equal(one[forward::o].bound.values(), many[forward::o].bound.values()));
  EXPECT_TRUE(
      std::ranges::equal(one[forward::lse].bound.values(), many[forward::lse].bound.values()));
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
  dirty[forward::k].at(0, 0, 50, 3) = std::numeric_limits<float>::quiet_NaN();
  dirty[forward::v].at(0, 0, 20, 5) = std::numeric_limits<float>::infinity();
  dirty[forward::q].at(0, 1, 10, 0) = std::numeric_limits<float>::quiet_NaN();
  const Answer want = exact_answer(problem, clean, plan_for(problem));
  const Answer got = exact_answer(problem, dirty, plan_for(problem));
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t query = 0; query < 80; ++query) {
      const bool row_is_bad = query >= 50 || (h == 1 && query == 10);
      EXPECT_EQ(std::isnan(got[forward::lse].value.at(0, h, query, 0)), row_is_bad);
      for (std::int64_t c = 0; c < 16; ++c) {
        const bool is_bad = row_is_bad || (c == 5 && query >= 20);
        const double o = got[forward::o].value.at(0, h, query, c);
        EXPECT_TRUE(is_bad ? std::isnan(o) : o == want[forward::o].value.at(0, h, query, c))
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
    EXPECT_EQ(answer[forward::lse].value.at(0, 0, query, 0),
              -std::numeric_limits<double>::infinity());
    EXPECT_EQ(answer[forward::lse].bound.at(0, 0, query, 0), 0);
    EXPECT_EQ(answer[forward::o].value.at(0, 0, query, 7), 0);
    EXPECT_EQ(answer[forward::o].bound.at(0, 0, query, 7), 0);
  }
  EXPECT_GT(answer[forward::o].bound.at(0, 0, 3, 7), 0);
}

TEST(ReferenceF64, ScoresThatFp32CannotHoldMakeTheBoundInfiniteAndNothingElse) {
  const Problem problem{
      .query_len = 3, .key_len = 4, .head_dim = 16, .mask = Mask::none, .scale = 1};
  Inputs inputs = normal_inputs(problem);
  for (std::int64_t c = 0; c < 16; ++c) inputs[forward::q].at(0, 0, 1, c) = 1e38F;
  const Answer answer = exact_answer(problem, inputs, plan_for(problem));
  EXPECT_TRUE(std::isinf(answer[forward::o].bound.at(0, 0, 1, 0)));
  EXPECT_TRUE(std::isinf(answer[forward::lse].bound.at(0, 0, 1, 0)));
  EXPECT_TRUE(std::isfinite(answer[forward::o].bound.at(0, 0, 0, 0)));
  EXPECT_TRUE(std::isfinite(answer[forward::o].own_error.at(0, 0, 1, 0)));
}

TEST(ReferenceF64, ATensorOfAnotherShapeIsRefused) {
  const Problem problem{.query_len = 3, .key_len = 4, .head_dim = 16};
  Inputs inputs = normal_inputs(problem);
  inputs[forward::k] = Tensor<float>({1, 1, 5, 16});
  EXPECT_THROW((void)exact_answer(problem, inputs, plan_for(problem)), InvalidInput);
}

}  // namespace
}  // namespace attest
