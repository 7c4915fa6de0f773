// Gates and residuals of O: what they are, before anybody computes with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/session.hpp"

namespace attest {
namespace {

Inputs drawn_with_epilogue(const Problem& problem, std::uint64_t seed = 5) {
  return make_inputs(problem, {.family = "normal", .seed = seed, .magnitude = 1});
}

TEST(Epilogues, AreFieldsOfForwardAlone) {
  for (const std::string field : {"gate_given", "residual_given", "gate_given residual_given"}) {
    const Problem problem = problem_from_string("b3 h4/2 q5 k6 d8 causal_top_left " + field);
    EXPECT_EQ(problem_from_string(to_string(problem)), problem) << field;
    EXPECT_NE(to_string(problem).find(field), std::string::npos);
    EXPECT_TRUE(has_epilogue(problem));
    for (const std::string other : {"backward", "quantised", "gradient"}) {
      EXPECT_THROW((void)problem_from_string(other + " q5 d8 " + field), InvalidInput) << other;
    }
  }
  EXPECT_THROW((void)problem_from_string("q5 d8 gate_sigmoid"), InvalidInput);
}

TEST(Epilogues, AreTensorsLikeOWhereTheyAreGivenAndElseNone) {
  const Problem plain = problem_from_string("b3 h4/2 q5 k6 d8 dv7 bf16");
  const Problem given = problem_from_string("b3 h4/2 q5 k6 d8 dv7 bf16 gate_given residual_given");
  for (const InputIndex input : {forward::gate, forward::residual}) {
    EXPECT_FALSE(has_tensor(plain, input));
    EXPECT_EQ(drawn_with_epilogue(plain)[input].size(), 0);
    EXPECT_EQ(drawn_with_epilogue(given)[input].shape(), output_shape(given));
    EXPECT_EQ(forward_operation[input].format(given), ElementType::bf16);
  }
  EXPECT_EQ(tensor_bytes(given) - tensor_bytes(plain), 2.0 * 2 * 3 * 4 * 5 * 7);
}

TEST(Epilogues, LeaveQKAndVAsTheyAreDrawnWithoutThem) {
  const Problem plain = problem_from_string("b2 h4/2 q5 k6 d8");
  const Problem given = problem_from_string("b2 h4/2 q5 k6 d8 gate_given residual_given");
  for (const InputIndex input : {forward::q, forward::k, forward::v}) {
    EXPECT_TRUE(std::ranges::equal(drawn_with_epilogue(plain)[input].values(),
                                   drawn_with_epilogue(given)[input].values()));
  }
}

TEST(Epilogues, AreDrawnInTheSizesOfModelsAndInHalfOfTheSeedsInAllOthers) {
  const Problem problem = problem_from_string("b2 h4 q33 k3 d8 gate_given residual_given fp16");
  const auto share = [&](InputIndex input, auto holds) {
    int seeds = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Inputs inputs = drawn_with_epilogue(problem, seed);
      for (const float x : inputs[input].values()) EXPECT_TRUE(std::isfinite(x));
      seeds += std::ranges::any_of(inputs[input].values(), holds) ? 1 : 0;
    }
    return seeds;
  };
  for (const InputIndex input : {forward::gate, forward::residual}) {
    EXPECT_GE(share(input, [](float x) { return std::abs(x) > 100; }), 10);
    EXPECT_LE(share(input, [](float x) { return std::abs(x) > 100; }), 30);
    EXPECT_EQ(share(input, [](float x) { return x > 0 && x < 1; }), 40);
  }
  EXPECT_GE(share(forward::gate, [](float x) { return x < 0; }), 10);
  EXPECT_LE(share(forward::gate, [](float x) { return x < 0; }), 30);
}

TEST(Epilogues, OfPackedEntriesLieWhereTheirRowsOfODo) {
  const Problem problem = problem_from_string("b3 h2 q5 k6 d8 lengths7 gate_given residual_given");
  for (const InputIndex input : {forward::gate, forward::residual}) {
    EXPECT_EQ(stored_shape(problem, input, {}), stored_shape(problem, forward::o, {}));
  }
}

}  // namespace
}  // namespace attest
