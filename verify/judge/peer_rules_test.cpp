#include "verify/judge/peer_rules.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/judgement.hpp"
#include "verify/judge/run.hpp"

namespace attest {
namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
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
    framework = {.wide = {Tensor<double>({1, 1, 1, 2}, 1.0), Tensor<double>({1, 1, 1, 1}, 2.0)},
                 .ref = outputs,
                 .pt = outputs};
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
    tiny.outputs[forward::o].values()[1] = not_a_number;
    EXPECT_FALSE(tiny.passes(rule.name)) << rule.name;
    tiny.framework.ref[forward::o].values()[1] = not_a_number;  // not even where NaN is right
    EXPECT_FALSE(tiny.passes(rule.name)) << rule.name;
  }
  Tiny tiny(ElementType::fp16);
  tiny.framework.pt[forward::o].values()[0] =
      not_a_number;  // a framework that overflows fails every kernel
  EXPECT_FALSE(tiny.passes("FlashAttention 2x"));
}

TEST(PeerRules, TorchtitanAllowsTwiceTheErrorOfTheFrameworkAndOneRoundingOfTheGoldenAnswer) {
  Tiny tiny(ElementType::fp16);
  const auto with_o = [&](float o) {
    tiny.outputs[forward::o].values()[0] = o;
    return tiny.passes("torchtitan 2x");
  };
  const float ulp = 0x1p-10F;
  EXPECT_TRUE(with_o(1.0F));
  EXPECT_FALSE(with_o(1.0F + ulp));
  tiny.framework.wide[forward::o].values()[1] = 1 + 0x1p-11;  // its rounding is off by half an ulp
  tiny.framework.pt[forward::o].values()[1] = 1.0F;
  EXPECT_TRUE(with_o(1.0F + 1.5F * ulp));
  EXPECT_FALSE(with_o(1.0F + 2 * ulp));
}

TEST(PeerRules, TorchtitanDoesNotDecideWhereTheFrameworkIsOffByATenth) {
  Tiny tiny(ElementType::fp32);
  tiny.outputs[forward::o].values()[0] = 100.0F;
  EXPECT_FALSE(tiny.passes("torchtitan 2x"));
  tiny.framework.pt[forward::o].values()[1] = 1.125F;
  EXPECT_TRUE(tiny.passes("torchtitan 2x"));
  tiny.framework.pt[forward::o].values()[1] = not_a_number;
  EXPECT_TRUE(tiny.passes("torchtitan 2x"));
  tiny.outputs[forward::o].values()[0] = infinity;  // is no number that could be off
  EXPECT_FALSE(tiny.passes("torchtitan 2x"));
}

TEST(PeerRules, OnlyFourPeersLookAtTheLse) {
  Tiny tiny(ElementType::fp32);
  tiny.outputs[forward::lse].values()[0] = 3.0F;
  EXPECT_TRUE(tiny.passes("FlashAttention 2x"));
  EXPECT_TRUE(tiny.passes("KernelBench 1e-2"));
  EXPECT_FALSE(tiny.passes("cuDNN 2e-2"));
  EXPECT_FALSE(tiny.passes("xFormers"));
  EXPECT_FALSE(tiny.passes("FlashInfer 1e-3"));
  EXPECT_FALSE(tiny.passes("torchtitan 2x"));
  tiny.outputs[forward::lse].values()[0] = tiny.framework.ref[forward::lse].values()[0] = -infinity;
  EXPECT_TRUE(tiny.passes("FlashInfer 1e-3"));
}

/// One element of each gradient, every tensor given.
struct TinyGradient {
  explicit TinyGradient(ElementType type) {
    problem.operation = &backward_operation;
    problem.head_dim = 1;
    problem.element_type = type;
    const Tensor<float> one({1, 1, 1, 1}, 1.0F);
    outputs = {one, one, one};
    const Tensor<double> wide({1, 1, 1, 1}, 1.0);
    framework = {.wide = {wide, wide, wide}, .ref = outputs, .pt = outputs};
  }
  [[nodiscard]] bool passes(std::string_view rule) const {
    return accepts(rule, {problem, plan, outputs, framework});
  }
  [[nodiscard]] bool passes_with(std::string_view rule, OutputIndex output, float value) {
    outputs[output].values()[0] = value;
    const bool passed = passes(rule);
    outputs[output].values()[0] = 1.0F;
    return passed;
  }
  Problem problem;
  Plan plan;
  Outputs outputs;
  FrameworkAnswers framework;
};

constexpr std::array all_outputs{backward::dq, backward::dk, backward::dv};

TEST(GradientRules, FlashAttentionAllowsThreeTimesTheErrorOfTheFrameworkInEachGradient) {
  for (const OutputIndex output : all_outputs) {
    TinyGradient tiny(ElementType::fp16);
    tiny.framework.pt[output].values()[0] = 1.0F + 0x1p-9F;
    EXPECT_TRUE(tiny.passes_with("FlashAttention 3x", output, 1.0F + 3 * 0x1p-9F));
    EXPECT_FALSE(tiny.passes_with("FlashAttention 3x", output, 1.0F + 3 * 0x1p-9F + 0x1p-10F));
  }
}

TEST(GradientRules, FlashAttention3AddsWhatAddingAndTakingAwayLeavesOfTheReference) {
  // 1.3 has its last digit at 2^-7 in bf16: 1.3 becomes 1.296875, and 0.996875 becomes 0.99609375.
  TinyGradient tiny(ElementType::bf16);
  const float digits = 0x1p-8F;
  for (const OutputIndex output : all_outputs) {
    EXPECT_TRUE(tiny.passes_with("FlashAttention-3 2x", output, 1.0F - 2 * digits));
    EXPECT_FALSE(tiny.passes_with("FlashAttention-3 2x", output, 1.0F - 3 * digits));
    tiny.framework.pt[output].values()[0] = 1.0F - digits;
    EXPECT_TRUE(tiny.passes_with("FlashAttention-3 2x", output, 1.0F - 4 * digits));
    EXPECT_FALSE(tiny.passes_with("FlashAttention-3 2x", output, 1.0F - 5 * digits));
    tiny.problem.softcap = 1;
    EXPECT_TRUE(tiny.passes_with("FlashAttention-3 2x", output, 1.0F - 5 * digits));
    tiny.problem.softcap = 0;
  }
}

TEST(GradientRules, CudnnAllowsMoreInBf16ForKeysAndValuesAlone) {
  for (const auto& [type, of_keys] :
       {std::pair(ElementType::fp16, 4e-2F), std::pair(ElementType::bf16, 9e-2F)}) {
    TinyGradient tiny(type);
    for (const OutputIndex output : all_outputs) {
      const float allowed = output == backward::dq ? 4e-2F : of_keys;
      EXPECT_TRUE(tiny.passes_with("cuDNN 2e-2", output, 1 + 0.99F * allowed)) << output.number;
      EXPECT_FALSE(tiny.passes_with("cuDNN 2e-2", output, 1 + 1.01F * allowed)) << output.number;
    }
  }
}

TEST(GradientRules, XformersAndTritonAskTheSameOfEachGradient) {
  for (const auto& [type, allowed] :
       {std::pair(ElementType::fp32, 1e-3F), std::pair(ElementType::fp16, 0.22F),
        std::pair(ElementType::bf16, 1.0F)}) {
    TinyGradient tiny(type);
    for (const OutputIndex output : all_outputs) {
      EXPECT_TRUE(tiny.passes_with("xFormers", output, 1 + 0.99F * allowed)) << output.number;
      EXPECT_FALSE(tiny.passes_with("xFormers", output, 1 + 1.01F * allowed)) << output.number;
      EXPECT_TRUE(tiny.passes_with("Triton 1e-2", output, 1.0099F)) << output.number;
      EXPECT_FALSE(tiny.passes_with("Triton 1e-2", output, 1.0101F)) << output.number;
    }
  }
}

TEST(GradientRules, PytorchMultipliesTheRoundingOfTheReferenceByAFactorOfEachGradient) {
  TinyGradient tiny(ElementType::bf16);
  for (const auto& [output, factor] :
       {std::pair(backward::dq, 160), std::pair(backward::dk, 25), std::pair(backward::dv, 8)}) {
    EXPECT_FALSE(tiny.passes_with("PyTorch 160x", output, 1.0F + 0x1p-16F));  // 1.5e-5
    EXPECT_TRUE(tiny.passes_with("PyTorch 160x", output, 1.0F + 0x1p-17F));   // 7.6e-6
    tiny.framework.wide[output].values()[0] = 1 + 0x1p-10;
    const float most = 1.0F + 0x1p-10F * static_cast<float>(1 + factor);
    EXPECT_TRUE(tiny.passes_with("PyTorch 160x", output, most)) << factor;
    EXPECT_FALSE(tiny.passes_with("PyTorch 160x", output, most + 0x1p-12F)) << factor;
    tiny.framework.wide[output].values()[0] = 1;
  }
}

TEST(GradientRules, NanIsRejectedByAllButTwoEvenWhereEveryReferenceIsNan) {
  for (const PeerRule& rule : peer_rules(backward_operation)) {
    for (const OutputIndex output : all_outputs) {
      TinyGradient tiny(ElementType::fp16);
      EXPECT_TRUE(tiny.passes(rule.name)) << rule.name;
      EXPECT_FALSE(tiny.passes_with(rule.name, output, not_a_number)) << rule.name;
      tiny.framework.wide[output].values()[0] = not_a_number;
      tiny.framework.ref[output].values()[0] = tiny.framework.pt[output].values()[0] = not_a_number;
      EXPECT_EQ(tiny.passes_with(rule.name, output, not_a_number),
                rule.name == "PyTorch 160x" || rule.name == "torchtitan 2x")
          << rule.name;
    }
  }
}

/// A case in fp16, where all the projects test, with what the tutorial of Triton takes for the
/// scale.
Case usual_case(const KernelInfo& kernel) {
  Problem problem = problem_from_string("b1 h2/2 q24 k24 d16 causal_top_left fp16 scale0.25");
  problem.operation = &backward_operation;
  return {.kernel = kernel.name,
          .problem = problem,
          .plan = {.query_tile = 4, .key_tile = 8},
          .inputs = {.family = "normal", .seed = 5, .magnitude = 1}};
}

std::vector<bool> rejections(const std::string& name) {
  const KernelInfo* const kernel = find_kernel(name, Executor::cpu);
  if (kernel == nullptr) throw std::logic_error("no kernel " + name);
  HostMemoryDevice device;
  const Case c = usual_case(*kernel);
  attest::Run run(*kernel, c, device);
  std::vector<bool> rejected = judge_by_rules(run, Judges::peers, "").rejected;
  rejected.resize(peer_columns(backward_operation));
  return rejected;
}

TEST(GradientRules, EachAcceptsACorrectKernelAndRejectsOneWithoutDelta) {
  const std::size_t rules = peer_rules(backward_operation).size();
  EXPECT_EQ(rejections("backward_tiled"), std::vector<bool>(rules, false));
  EXPECT_EQ(rejections("mutant/b01_delta_missing"), std::vector<bool>(rules, true));
}

TEST(GradientRules, NoneRejectsPOrDscoresThatAreCutInsteadOfRounded) {
  const std::size_t rules = peer_rules(backward_operation).size();
  for (const char* const name : {"mutant/b19_weights_cut", "mutant/b46_dscores_cut"}) {
    EXPECT_EQ(rejections(name), std::vector<bool>(rules, false)) << name;
  }
}

TEST(PeerRules, TheHeadsOfAllColumnsFitAboveTheirNumbersAndDiffer) {
  for (const Operation* const operation : all_operations()) {
    std::set<std::string_view> heads, names;
    for (std::size_t column = 0; column < matrix_columns(*operation); ++column) {
      EXPECT_FALSE(column_head(*operation, column).empty());
      EXPECT_LE(column_head(*operation, column).size(), 6U);
      heads.insert(column_head(*operation, column));
      names.insert(column_name(*operation, column));
    }
    EXPECT_EQ(heads.size(), matrix_columns(*operation)) << operation->name;
    EXPECT_EQ(names.size(), matrix_columns(*operation)) << operation->name;
  }
}

}  // namespace
}  // namespace attest
