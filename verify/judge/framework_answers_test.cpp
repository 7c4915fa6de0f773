// What frameworks make of the unfused formula: hand-computed roundings, and gradients against ours.
#include "verify/judge/framework_answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/precision_plan.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/reference.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"

namespace attest {
namespace {

TEST(FrameworkAnswers, TwoEqualKeysGiveTheMeanAndOneRoundingShowsInTheElementType) {
  Problem problem{.key_len = 2, .head_dim = 1, .element_type = ElementType::bf16, .scale = 1.0F};
  Inputs inputs{Tensor<float>({1, 1, 1, 1}, 1.0F), Tensor<float>({1, 1, 2, 1}, 3.0F),
                Tensor<float>({1, 1, 2, 1}, 1.0F)};
  inputs[forward::v].values()[1] = 1.0078125F;  // the next bf16: the mean is a tie, to even
  const FrameworkAnswers answers = framework_answers(problem, inputs);
  EXPECT_EQ(answers.ref[forward::o].values()[0], 1.0F);
  EXPECT_EQ(answers.pt[forward::o].values()[0], 1.0F);
  EXPECT_EQ(answers.ref[forward::lse].values()[0], 3.0F + std::log(2.0F));
}

TEST(FrameworkAnswers, TheScaleIsFoldedIntoKeysAndRoundedThere) {
  // In units of 2^-7, bf16's spacing there: keys 192 and 191 times 1 + 2^-7 are 193.5 and 192.49,
  // and become 194 (the tie goes to even) and 192.
  Problem problem{
      .key_len = 2, .head_dim = 1, .element_type = ElementType::bf16, .scale = 1.0078125F};
  Inputs inputs{Tensor<float>({1, 1, 1, 1}, 64.0F), Tensor<float>({1, 1, 2, 1}, 0.0F),
                Tensor<float>({1, 1, 2, 1}, 0.0F)};
  inputs[forward::k].values()[0] = 1.5F;
  inputs[forward::k].values()[1] = 1.4921875F;
  inputs[forward::v].values()[0] = 1.0F;
  const FrameworkAnswers answers = framework_answers(problem, inputs);
  const auto first_weight = [](double logit_difference) {
    return static_cast<float>(round_to(ElementType::bf16, 1 / (1 + std::exp(-logit_difference))));
  };
  EXPECT_EQ(answers.ref[forward::o].values()[0], first_weight(64 * 0x1p-7 * 1.0078125));
  EXPECT_EQ(answers.pt[forward::o].values()[0], first_weight(64 * 0x1p-7 * 2));
}

TEST(FrameworkAnswers, RowsWithoutKeysAreZeroWithMinusInfinity) {
  const Problem problem{.query_len = 3,
                        .key_len = 1,
                        .head_dim = 1,
                        .mask = Mask::causal_bottom_right,
                        .scale = 1.0F};
  const Inputs inputs{Tensor<float>({1, 1, 3, 1}, 1.0F), Tensor<float>({1, 1, 1, 1}, 1.0F),
                      Tensor<float>({1, 1, 1, 1}, 5.0F)};
  const FrameworkAnswers answers = framework_answers(problem, inputs);
  EXPECT_EQ(answers.ref[forward::o].values()[0], 0.0F);
  EXPECT_EQ(answers.pt[forward::o].values()[1], 0.0F);
  EXPECT_EQ(answers.ref[forward::o].values()[2], 5.0F);
  EXPECT_EQ(answers.ref[forward::lse].values()[0], -std::numeric_limits<float>::infinity());
}

// In double, against the definition: within what a kernel in fp32 may err by.
TEST(FrameworkAnswers, ScoreModificationsAreThoseOfTheDefinition) {
  for (const std::string with :
       {"sinks_given", "slopes_given", "bias_full", "bias_shared causal_top_left",
        "sinks_given bias_heads slopes_given softcap3 causal_bottom_right",
        "prefix5 causal_top_left", "documents9", "dropout0.5 philox4", "dropout1 sinks_given",
        "gate_given", "residual_given gate_given causal_bottom_right"}) {
    const Problem problem = problem_from_string("b2 h4/2 q9 k7 d8 fp32 " + with);
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Inputs inputs = make_inputs(problem, {.family = "normal", .seed = seed});
      const Answer answer = reference_of(forward_operation).exact(problem, inputs, PrecisionPlan{});
      const FrameworkAnswers answers = framework_answers(problem, inputs);
      for (const OutputIndex output : {forward::o, forward::lse}) {
        const auto got = answers.wide[output].values(), want = answer[output].value.values();
        for (std::size_t i = 0; i < got.size(); ++i) {
          if (got[i] == want[i]) continue;
          ASSERT_LE(std::abs(got[i] - want[i]), answer[output].bound.values()[i])
              << to_string(problem) << ' ' << seed << ' ' << output.number << ' ' << i;
        }
      }
    }
  }
}

Problem backward_of(const std::string& text) {
  Problem problem = problem_from_string(text);
  problem.operation = &backward_operation;
  return problem;
}

/// Roundings of a kernel in fp32 that turns LSE into units of log2 and adds delta up: more than
/// what rounding O and LSE to fp32 once, as `complete` does, can move a gradient.
BackwardRoundings of_fp32_kernel(const Problem& problem) {
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  return {.softcap_error = 6 * fp32_arithmetic.unit_roundoff,
          .lse = LseForm::log2,
          .delta_chain = problem.output_dim(),
          .weight_format = ElementType::fp32,
          .dscore_format = ElementType::fp32,
          .dq_chain = problem.key_len,
          .kv_chain = problem.query_len * group,
          .output = ElementType::fp32};
}

TEST(FrameworkAnswers, GradientsInDoubleAreThoseOfOurReferenceWithEveryKindOfMask) {
  for (const char* const text :
       {"b2 h2/2 q9 k9 d8 none fp32", "b1 h4/2 q7 k12 d4 causal_bottom_right fp32",
        "b1 h2/1 q12 k7 d8 causal_bottom_right fp32 dv5",
        "b1 h2/2 q12 k12 d8 window_top_left left4 right1 fp32 scale-0.75",
        "b2 h4/1 q8 k10 d8 none fp32 softcap2", "b3 h2/1 q9 k11 d8 causal_top_left fp32 lengths3",
        "b2 h2/1 q6 k13 d8 causal_bottom_right fp32 softcap3 padding5"}) {
    const Problem problem = backward_of(text);
    for (const char* const family : {"normal", "gradient_mean_kv"}) {
      const Inputs inputs = make_inputs(problem, {.family = family, .seed = 3, .magnitude = 1});
      const FrameworkAnswers framework = framework_answers(problem, inputs);
      const Answer answer =
          reference_of(backward_operation).exact(problem, inputs, of_fp32_kernel(problem));
      for (const OutputIndex i : {backward::dq, backward::dk, backward::dv}) {
        double largest = 0;
        for (std::size_t e = 0; e < answer[i].value.values().size(); ++e) {
          const double got = framework.wide[i].values()[e];
          const double want = answer[i].value.values()[e];
          EXPECT_LE(std::abs(got - want), answer[i].bound.values()[e])
              << text << ' ' << family << ' ' << i.number << ' ' << e;
          largest = std::max(largest, std::abs(want));
        }
        EXPECT_GT(largest, 0) << text;
      }
    }
  }
}

/// Two query heads of one KV head, two rows each, and one key: P = 1, and dV is the sum of dO.
TEST(FrameworkAnswers, TheGradientOfEachQueryHeadIsRoundedBeforeTheGroupIsAddedUp) {
  const Problem problem = backward_of("b1 h2/1 q2 k1 d1 none bf16");
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 1, .magnitude = 1});
  // bf16's spacing from 256 on is 2: 257 is a tie and becomes 256.
  inputs[backward::d_o].at(0, 0, 0, 0) = 256;
  inputs[backward::d_o].at(0, 0, 1, 0) = 1;
  inputs[backward::d_o].at(0, 1, 0, 0) = 1;
  inputs[backward::d_o].at(0, 1, 1, 0) = 0;
  const FrameworkAnswers answers = framework_answers(problem, inputs);
  EXPECT_EQ(answers.wide[backward::dv].values()[0], 258);
  EXPECT_EQ(answers.ref[backward::dv].values()[0], 258);
  EXPECT_EQ(answers.pt[backward::dv].values()[0], 256);
  EXPECT_EQ(answers.ref[backward::dq].values()[0], 0);  // one key: no score changes anything
  EXPECT_EQ(answers.pt[backward::dk].values()[0], 0);
}

TEST(FrameworkAnswers, GradientsTakeNoNoticeOfTheOAndLseThatAKernelIsGiven) {
  const Problem problem = backward_of("b1 h1/1 q5 k7 d4 causal_bottom_right fp16");
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 1, .magnitude = 1});
  const FrameworkAnswers before = framework_answers(problem, inputs);
  for (float& x : inputs[backward::o].values()) x += 1;
  for (float& x : inputs[backward::lse].values()) x += 1;
  const FrameworkAnswers after = framework_answers(problem, inputs);
  for (const OutputIndex i : {backward::dq, backward::dk, backward::dv}) {
    EXPECT_TRUE(std::ranges::equal(before.wide[i].values(), after.wide[i].values())) << i.number;
    EXPECT_TRUE(std::ranges::equal(before.pt[i].values(), after.pt[i].values())) << i.number;
  }
}

TEST(FrameworkAnswers, ANanInVReachesTheGradientsOfTheRowsThatSeeItAndNoOthers) {
  const Problem problem = backward_of("b1 h1/1 q3 k3 d2 causal_top_left fp32");
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 1, .magnitude = 1});
  inputs[backward::v].at(0, 0, 2, 0) = std::numeric_limits<float>::quiet_NaN();
  const FrameworkAnswers answers = framework_answers(problem, inputs);
  EXPECT_FALSE(std::isnan(answers.ref[backward::dq].at(0, 0, 1, 0)));
  EXPECT_TRUE(std::isnan(answers.ref[backward::dq].at(0, 0, 2, 0)));
  EXPECT_TRUE(std::isnan(answers.ref[backward::dk].at(0, 0, 0, 0)));
  EXPECT_FALSE(std::isnan(answers.ref[backward::dv].at(0, 0, 2, 0)));
}

/// 0 * NaN in O, and so in dS of the row; what the mask covers has a score that is a constant.
TEST(FrameworkAnswers, ANanInVOfAPaddedKeyReachesDqButNotItsOwnDk) {
  const Problem problem = backward_of("b1 h1/1 q2 k8 d2 none fp32 padding5");
  std::int64_t padded = 0;
  while (padded < problem.key_len && !problem.is_padded(0, padded)) ++padded;
  ASSERT_LT(padded, problem.key_len);
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 1, .magnitude = 1});
  inputs[backward::v].at(0, 0, padded, 0) = std::numeric_limits<float>::quiet_NaN();
  const FrameworkAnswers answers = framework_answers(problem, inputs);
  EXPECT_TRUE(std::isnan(answers.ref[backward::dq].at(0, 0, 0, 0)));
  EXPECT_EQ(answers.ref[backward::dk].at(0, 0, padded, 0), 0);
}

}  // namespace
}  // namespace attest
