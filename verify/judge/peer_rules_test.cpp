#include "verify/judge/peer_rules.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

bool accepts(std::string_view rule, const PeerCase& c) {
  for (const PeerRule& peer : peer_rules(*c.problem.operation)) {
    if (peer.name == rule) return peer.accepts(c);
  }
  ADD_FAILURE() << "no rule " << rule;
  return false;
}

/// One row of two elements, every tensor given.
struct Tiny {
  explicit Tiny(ElementType type) {
    problem.head_dim = 2;
    problem.element_type = type;
    outputs = {Tensor<float>({1, 1, 1, 2}, 1.0F), Tensor<float>({1, 1, 1, 1}, 2.0F)};
    framework = {.ref = outputs, .pt = outputs};
  }
  [[nodiscard]] bool passes(std::string_view rule) const {
    return accepts(rule, {problem, plan, outputs, framework});
  }
  Problem problem;
  Plan plan;
  Outputs outputs;
  FrameworkAnswers framework;
};

TEST(PeerRules, ToleranceIsAbsolutePlusRelativeAndItsEdgeIsAccepted) {
  Tiny tiny(ElementType::fp32);
  tiny.framework.ref[forward::o].values()[0] = tiny.outputs[forward::o].values()[0] = 0.0F;
  tiny.outputs[forward::o].values()[0] = 0.0625F;
  EXPECT_FALSE(tiny.passes("cuDNN 2e-2"));
  tiny.outputs[forward::o].values()[0] = 0.0195F;  // below 2e-2 around 0
  EXPECT_TRUE(tiny.passes("cuDNN 2e-2"));
  EXPECT_FALSE(tiny.passes("KernelBench 1e-2"));
  tiny.outputs[forward::o].values()[0] = 0.0F;
  tiny.outputs[forward::o].values()[1] = 1.0390625F;  // below 2e-2 + 2e-2 around 1
  EXPECT_TRUE(tiny.passes("cuDNN 2e-2"));
  tiny.outputs[forward::o].values()[1] = 1.046875F;
  EXPECT_FALSE(tiny.passes("cuDNN 2e-2"));
}

TEST(PeerRules, TolerancesDependOnTheFormatWhereTheOriginalSaysSo) {
  for (const auto& [type, xformers_takes, kernel_bench_takes] :
       {std::tuple(ElementType::fp32, 3e-4F, 1.9e-4F),
        std::tuple(ElementType::fp16, 4e-3F, 1.9e-2F),
        std::tuple(ElementType::bf16, 2e-2F, 1.9e-2F)}) {
    Tiny tiny(type);
    tiny.outputs[forward::o].values()[1] = 1.0F + xformers_takes;
    EXPECT_TRUE(tiny.passes("xFormers"));
    tiny.outputs[forward::o].values()[1] = 1.0F + 2 * xformers_takes;
    EXPECT_FALSE(tiny.passes("xFormers"));
    tiny.outputs[forward::o].values()[1] = 1.0F + kernel_bench_takes;
    EXPECT_TRUE(tiny.passes("KernelBench 1e-2"));
    tiny.outputs[forward::o].values()[1] = 1.0F + 2 * kernel_bench_takes;
    EXPECT_FALSE(tiny.passes("KernelBench 1e-2"));
  }
}

TEST(PeerRules, FlashAttentionAllowsTwiceTheErrorOfTheFramework) {
  Tiny tiny(ElementType::fp16);
  EXPECT_TRUE(tiny.passes("FlashAttention 2x"));
  tiny.framework.pt[forward::o].values()[0] = 1.0F + 0x1p-9F;
  tiny.outputs[forward::o].values()[1] = 1.0F + 0x1p-8F;  // the maximum is over the tensor
  EXPECT_TRUE(tiny.passes("FlashAttention 2x"));
  tiny.outputs[forward::o].values()[1] = 1.0F + 0x1p-8F + 0x1p-10F;
  EXPECT_FALSE(tiny.passes("FlashAttention 2x"));
}

TEST(PeerRules, FlashAttentionAddsToTheToleranceOfCausalAndSplitRuns) {
  Tiny tiny(ElementType::fp32);
  tiny.outputs[forward::o].values()[0] = 1.0F + 0x1p-17F;  // 7.6e-6
  EXPECT_FALSE(tiny.passes("FlashAttention 2x"));
  tiny.problem.mask = Mask::causal_top_left;
  EXPECT_TRUE(tiny.passes("FlashAttention 2x"));
  tiny.outputs[forward::o].values()[0] = 1.0F + 0x1p-13F;  // 1.2e-4
  EXPECT_FALSE(tiny.passes("FlashAttention 2x"));
  tiny.plan.key_splits = 2;
  EXPECT_TRUE(tiny.passes("FlashAttention 2x"));
}

TEST(PeerRules, NanIsRejectedByEveryRule) {
  for (const PeerRule& rule : peer_rules(forward_operation)) {
    Tiny tiny(ElementType::fp32);
    EXPECT_TRUE(tiny.passes(rule.name)) << rule.name;
    tiny.outputs[forward::o].values()[1] = nan;
    EXPECT_FALSE(tiny.passes(rule.name)) << rule.name;
    tiny.framework.ref[forward::o].values()[1] = nan;  // not even where NaN is right
    EXPECT_FALSE(tiny.passes(rule.name)) << rule.name;
  }
  Tiny tiny(ElementType::fp16);
  tiny.framework.pt[forward::o].values()[0] = nan;  // a framework that overflows fails every kernel
  EXPECT_FALSE(tiny.passes("FlashAttention 2x"));
}

TEST(PeerRules, OnlyThreePeersLookAtTheLse) {
  Tiny tiny(ElementType::fp32);
  tiny.outputs[forward::lse].values()[0] = 3.0F;
  EXPECT_TRUE(tiny.passes("FlashAttention 2x"));
  EXPECT_TRUE(tiny.passes("KernelBench 1e-2"));
  EXPECT_FALSE(tiny.passes("cuDNN 2e-2"));
  EXPECT_FALSE(tiny.passes("xFormers"));
  EXPECT_FALSE(tiny.passes("FlashInfer 1e-3"));
  tiny.outputs[forward::lse].values()[0] = tiny.framework.ref[forward::lse].values()[0] = -infinity;
  EXPECT_TRUE(tiny.passes("FlashInfer 1e-3"));
}

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
  EXPECT_EQ(answers.ref[forward::lse].values()[0], -infinity);
}

}  // namespace
}  // namespace attest
