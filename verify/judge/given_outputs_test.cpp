#include "verify/judge/given_outputs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace {

using Named = std::vector<std::pair<std::string, Tensor<float>>>;

/// A file of fp32 tensors; LSE and its kin lose the axis of one column.
Safetensors file_of(const Named& tensors) {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    if (name == "lse" || name == "dlse") shape.pop_back();
    if (name == "sinks" || name == "slopes") shape = {shape[1]};
    const auto raw = std::as_bytes(std::span(tensor.values()));
    header[name] = {{"dtype", "F32"},
                    {"shape", shape},
                    {"data_offsets", {data.size(), data.size() + raw.size()}}};
    data.append(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  const std::string text = header.dump();
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(text.size() >> 8 * i & 0xff);
  bytes += text + data;
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
  return Safetensors::from_bytes({first, first + bytes.size()}, "outputs");
}

Tensor<float> rounded(const Tensor<double>& exact) {
  Tensor<float> tensor(exact.shape());
  for (std::size_t e = 0; e < exact.values().size(); ++e) {
    tensor.values()[e] = static_cast<float>(exact.values()[e]);
  }
  return tensor;
}

/// Inputs and the exact outputs, rounded once.
Named answered(const Problem& problem) {
  const Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 3});
  const Answer answer = reference_of(*problem.operation).exact(problem, inputs, PrecisionPlan{});
  Named all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!has_tensor(problem, InputIndex{i})) continue;
    all.emplace_back((*problem.operation)[InputIndex{i}].name, inputs[InputIndex{i}]);
  }
  for (std::size_t i = 0; i < answer.size(); ++i) {
    all.emplace_back((*problem.operation)[OutputIndex{i}].name,
                     rounded(answer[OutputIndex{i}].value));
  }
  return all;
}

Tensor<float>& of(Named& tensors, std::string_view name) {
  for (auto& [one, tensor] : tensors) {
    if (one == name) return tensor;
  }
  throw std::logic_error("no such tensor");
}

constexpr const char* question = "causal_bottom_right scale0.3";

/// Asked with the question.
Problem asked(const std::string& sizes = "b2 h4/2 q5 k9 d8 fp32") {
  return problem_from_string(sizes + ' ' + question);
}

TEST(GivenOutputs, ExactOnesAreWithinAndAreJudgedInEveryElement) {
  const GivenOutputs given = judge_given_outputs(file_of(answered(asked())), question);
  EXPECT_EQ(given.problem, asked());
  EXPECT_TRUE(given.are_within());
  EXPECT_TRUE(given.are_decided());
  ASSERT_EQ(given.outputs.size(), 2U);
  EXPECT_EQ(given.outputs[0].comparison.elements, 2 * 4 * 5 * 8);
  EXPECT_EQ(given.rows, 2 * 4 * 5);
}

TEST(GivenOutputs, AnotherQuestionHasAnotherAnswer) {
  const Safetensors file = file_of(answered(asked()));
  for (const char* const other : {"", "causal_top_left scale0.3", "causal_bottom_right scale0.31",
                                  "causal_bottom_right scale0.3 softcap2"}) {
    EXPECT_FALSE(judge_given_outputs(file, other).are_within()) << other;
  }
}

/// Sinks, slopes and a bias that come with the outputs; the first two without axes of 1.
TEST(GivenOutputs, WhatModifiesScoresIsReadFromTheFile) {
  const std::string sizes = "b2 h4/2 q5 k9 d8 fp32 ";
  for (const std::string with :
       {"sinks_given", "slopes_given", "bias_full", "bias_heads", "bias_entries",
        "bias_shared sinks_given", "bias_shared sinks_given slopes_given", "gate_given",
        "gate_given residual_given", "residual_given sinks_given"}) {
    const Problem problem = asked(sizes + with);
    Named tensors = answered(problem);
    for (const std::int64_t rows : {0, 3}) {
      const GivenOutputs given = judge_given_outputs(file_of(tensors), question, rows);
      EXPECT_EQ(given.problem, problem) << with;
      EXPECT_TRUE(given.are_within()) << with;
    }
    for (auto& [name, tensor] : tensors) {
      const bool modifies = name == "sinks" || name == "slopes" || name == "bias" ||
                            name == "gate" || name == "residual";
      for (float& x : tensor.values()) x = modifies ? 0.3F + 2 * x : x;
    }
    EXPECT_FALSE(judge_given_outputs(file_of(tensors), question).are_within()) << with;
  }
}

TEST(GivenOutputs, NumbersThatModifyNoScoreGetOneLine) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Named right = answered(asked("b2 h4/2 q5 k9 d8 fp32 bias_heads sinks_given slopes_given"));
  const auto complaint = [&](const std::string& name, const Shape& at, float number) {
    Named tensors = right;
    of(tensors, name).at(at[0], at[1], at[2], at[3]) = number;
    try {
      (void)judge_given_outputs(file_of(tensors), question);
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint("sinks", {0, 3, 0, 0}, infinity),
            "'outputs': 'sinks' holds inf at [3]; allowed: finite numbers and -infinity");
  EXPECT_EQ(complaint("slopes", {0, 1, 0, 0}, -infinity),
            "'outputs': 'slopes' holds -inf at [1]; allowed: finite numbers");
  EXPECT_EQ(complaint("bias", {0, 2, 4, 7}, std::numeric_limits<float>::quiet_NaN()),
            "'outputs': 'bias' holds nan at [0, 2, 4, 7]; allowed: finite numbers and -infinity");
}

TEST(GivenOutputs, TheWorstElementIsFoundWhereItIs) {
  Named tensors = answered(asked());
  of(tensors, "o").at(1, 3, 2, 7) += 0.25F;
  const GivenOutputs given = judge_given_outputs(file_of(tensors), question);
  EXPECT_FALSE(given.are_within());
  EXPECT_EQ(given.outputs[0].comparison.outside, 1);
  EXPECT_EQ(given.outputs[0].comparison.worst.index, (Shape{1, 3, 2, 7}));
  EXPECT_EQ(given.outputs[1].comparison.outside, 0);
}

TEST(GivenOutputs, ANaNIsSeenInWhicheverRowItIsThoughFewRowsAreDrawn) {
  const std::string no_mask = "scale0.3";
  const Problem many = problem_from_string("b2 h4/2 q50 k9 d8 fp32 " + no_mask);
  const Named right = answered(many);
  EXPECT_TRUE(judge_given_outputs(file_of(right), no_mask, 3).are_within());
  EXPECT_EQ(judge_given_outputs(file_of(right), no_mask, 3).rows, 3);
  for (const std::int64_t query : {0, 17, 49}) {
    Named tensors = right;
    of(tensors, "o").at(1, 2, query, 5) = std::numeric_limits<float>::quiet_NaN();
    const GivenOutputs given = judge_given_outputs(file_of(tensors), no_mask, 3);
    EXPECT_FALSE(given.are_within()) << query;
    EXPECT_EQ(given.outputs[0].comparison.worst.index, (Shape{1, 2, query, 5}));
  }
}

TEST(GivenOutputs, DrawnRowsAreJudgedAsTheyAreAmongAll) {
  Named tensors = answered(asked());
  for (float& value : of(tensors, "o").values()) value += 1.0F;
  const GivenOutputs all = judge_given_outputs(file_of(tensors), question);
  const GivenOutputs some = judge_given_outputs(file_of(tensors), question, 7, 1);
  EXPECT_EQ(some.outputs[0].comparison.elements, 7 * 8);
  EXPECT_EQ(some.outputs[0].comparison.outside, 7 * 8);
  EXPECT_LE(some.outputs[0].comparison.worst.ratio, all.outputs[0].comparison.worst.ratio);
}

TEST(GivenOutputs, RowsWithoutKeysAreZeroAndTheirLseIsMinusInfinity) {
  Named tensors = answered(asked("q9 k5 d8 fp32"));
  EXPECT_TRUE(judge_given_outputs(file_of(tensors), question).are_within());
  of(tensors, "o").at(0, 0, 0, 0) = 1e-30F;
  EXPECT_FALSE(judge_given_outputs(file_of(tensors), question).are_within());
}

/// The problem is one of gradients, with O and LSE as a forward pass saved them.
TEST(GivenOutputs, GradientsAreThoseOfWhatTheForwardPassSavedAndOfDlseWhereThereIsOne) {
  for (const char* const more : {"", " dlse_given", " sinks_given slopes_given", " bias_heads"}) {
    const Problem backward =
        problem_from_string("b2 h4/2 q5 k9 d8 fp32 backward" + std::string(more));
    const Inputs inputs = make_inputs(backward, {.family = "normal", .seed = 3});
    const Answer answer =
        reference_of(backward_operation).exact(backward, inputs, BackwardRoundings{});
    Named tensors;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!has_tensor(backward, InputIndex{i})) continue;
      tensors.emplace_back(backward_operation[InputIndex{i}].name, inputs[InputIndex{i}]);
    }
    for (std::size_t i = 0; i < answer.size(); ++i) {
      if (!has_tensor(backward, OutputIndex{i})) continue;
      tensors.emplace_back(backward_operation[OutputIndex{i}].name,
                           rounded(answer[OutputIndex{i}].value));
    }
    const GivenOutputs right = judge_given_outputs(file_of(tensors), "");
    EXPECT_EQ(right.problem, backward);
    const bool has_more = backward.sinks != Sinks::none || backward.bias != Bias::none;
    EXPECT_EQ(right.outputs.size(), has_more ? 4U : 3U);
    EXPECT_TRUE(right.are_within()) << more;
    of(tensors, "dv").at(1, 1, 8, 7) += 0.5F;
    EXPECT_FALSE(judge_given_outputs(file_of(tensors), "").are_within());
  }
}

TEST(GivenOutputs, BadFilesGetOneLine) {
  const Named right = answered(asked());
  const auto complaint = [&](const std::string& name, const Shape& shape) {
    Named tensors = right;
    of(tensors, name) = Tensor<float>(shape);
    try {
      (void)judge_given_outputs(file_of(tensors), question);
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint("o", {2, 4, 5, 7}),
            "'outputs': 'o' has shape [2, 4, 5, 7]; allowed: [2, 4, 5, 8]");
  EXPECT_EQ(complaint("lse", {2, 4, 4, 1}),
            "'outputs': 'lse' has shape [2, 4, 4]; allowed: [2, 4, 5, 1]");
  EXPECT_NE(complaint("k", {2, 3, 9, 8}).find("heads"), std::string::npos);
}

}  // namespace
}  // namespace attest
