// Gates and residuals in the oracle, the f64 reference and the bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/bound_constants.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/forward/reference_f64_test.hpp"

namespace attest {
namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr double unbounded = std::numeric_limits<double>::infinity();

Inputs drawn_with_epilogue(const Problem& problem, std::uint64_t seed, double magnitude = 1) {
  return make_inputs(problem, {.family = "normal", .seed = seed, .magnitude = magnitude});
}

Problem without_epilogue(Problem problem) {
  take_away_epilogue(problem);
  return problem;
}

/// Calls visit(b, h, n, column) for every element of O that exists.
template <typename Visit>
void for_each_output(const Problem& problem, const Visit& visit) {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len_of(b); ++n) {
        for (std::int64_t c = 0; c < problem.output_dim(); ++c) visit(b, h, n, c);
      }
    }
  }
}

const std::vector<std::string> epilogue_problems{
    "b2 h4/2 q5 k6 d8 gate_given",
    "b2 h4/2 q5 k6 d8 dv3 residual_given bf16",
    "b2 h4/2 q9 k5 d8 causal_bottom_right gate_given residual_given fp16",
    "b3 h2/1 q7 k9 d8 lengths5 gate_given residual_given bf16",
    "b2 h2/1 q7 k9 d8 sinks_given padding3 gate_given residual_given",
    "b1 h2/1 q3 k0 d8 gate_given residual_given"};

TEST(EpilogueExact, OIsThatOfAttentionTimesTheGateAndTheResidualMore) {
  for (const std::string& text : epilogue_problems) {
    const Problem problem = problem_from_string(text);
    const Problem plain = without_epilogue(problem);
    const Inputs inputs = drawn_with_epilogue(problem, 3);
    for_each_output(problem, [&](auto b, auto h, auto n, auto c) {
      const auto at = static_cast<std::size_t>(c);
      const auto row = oracle_row<Quad>(problem, inputs, b, h, n);
      const auto attended = oracle_row<Quad>(plain, inputs, b, h, n);
      const Quad gate =
          problem.gate == OutputGate::given ? inputs[forward::gate].at(b, h, n, c) : 1.0F;
      const Quad residual =
          problem.residual == Residual::given ? inputs[forward::residual].at(b, h, n, c) : 0.0F;
      EXPECT_EQ(row.o[at], gate * attended.o[at] + residual) << text;
      EXPECT_EQ(row.lse, attended.lse) << text;
    });
  }
}

TEST(EpilogueExact, TheReferenceLiesWithinItsOwnErrorOfTheOracle) {
  for (const std::string& text : epilogue_problems) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Problem problem = problem_from_string(text);
      const Inputs inputs = drawn_with_epilogue(problem, seed, 10);
      const Answer answer = exact_answer(problem, inputs, plan_for(problem));
      EXPECT_TRUE(certify_rows(problem, inputs, answer, seed, 40).holds()) << text << seed;
    }
  }
}

TEST(EpilogueExact, TheReferenceHasTheBoundOfTheOracle) {
  for (const std::string& text : epilogue_problems) {
    for (const bool rounds_before : {false, true}) {
      const Problem problem = problem_from_string(text);
      const Inputs inputs = drawn_with_epilogue(problem, 7);
      PrecisionPlan plan = plan_for(problem);
      plan.rounds_before_epilogue = rounds_before;
      const Answer answer = exact_answer(problem, inputs, plan);
      for_each_output(problem, [&](auto b, auto h, auto n, auto c) {
        const auto row = oracle_row<Quad>(problem, inputs, b, h, n);
        const auto bound = oracle_bound(problem, inputs, b, h, row, plan);
        const double got = answer[forward::o].bound.at(b, h, n, c);
        const double own = answer[forward::o].own_error.at(b, h, n, c);
        const auto want = static_cast<double>(bound.o[static_cast<std::size_t>(c)]);
        // As in ReferenceF64.HasTheBoundOfTheOracle.
        EXPECT_LE(std::abs(got - own - want), want * 0x1p-20) << text;
      });
    }
  }
}

TEST(EpilogueExact, ARowThatSeesNoKeyIsItsResidualOrZeroExactly) {
  for (const std::string epilogue :
       {"gate_given", "residual_given", "gate_given residual_given sinks_given"}) {
    const Problem problem = problem_from_string("h2 q5 k2 d8 causal_bottom_right bf16 " + epilogue);
    const Inputs inputs = drawn_with_epilogue(problem, 1);
    const Answer answer = exact_answer(problem, inputs, plan_for(problem));
    for_each_output(problem, [&](auto b, auto h, auto n, auto c) {
      if (n > 2) return;
      const bool is_added = problem.residual == Residual::given;
      const float want = is_added ? inputs[forward::residual].at(b, h, n, c) : 0;
      EXPECT_EQ(answer[forward::o].value.at(b, h, n, c), want) << epilogue;
      EXPECT_EQ(answer[forward::o].bound.at(b, h, n, c), 0) << epilogue;
    });
  }
}

TEST(EpilogueExact, ANanOrInfinityOfAnOperandIsNanInItsElementAlone) {
  const Problem problem = problem_from_string(
      "h2 q5 k2 d8 causal_bottom_right gate_given "
      "residual_given");
  for (const InputIndex input : {forward::gate, forward::residual}) {
    for (const float bad : {not_a_number, std::numeric_limits<float>::infinity()}) {
      for (const std::int64_t query : {1, 4}) {  // the first sees no key
        Inputs inputs = drawn_with_epilogue(problem, 2);
        inputs[input].at(0, 1, query, 3) = bad;
        const Answer answer = exact_answer(problem, inputs, plan_for(problem));
        for_each_output(problem, [&](auto b, auto h, auto n, auto c) {
          const bool is_bad = h == 1 && n == query && c == 3;
          EXPECT_EQ(std::isnan(answer[forward::o].value.at(b, h, n, c)), is_bad);
          EXPECT_EQ(std::isnan(answer[forward::o].bound.at(b, h, n, c)), is_bad);
          const auto row = oracle_row<Quad>(problem, inputs, b, h, n);
          EXPECT_EQ(isnan(row.o[static_cast<std::size_t>(c)]), is_bad);
        });
        EXPECT_TRUE(certify_rows(problem, inputs, answer, 0, 40).holds());
      }
    }
  }
}

/// O of a kernel without an error of its own but those of its epilogue: A rounded to fp32, then as
/// `rounds_before` says.
double computed(ElementType type, double a, float gate, float residual, bool rounds_before) {
  const auto stored = [&](float x) { return static_cast<float>(round_to(type, x)); };
  float x = static_cast<float>(a);
  if (rounds_before) x = stored(x);
  x *= gate;
  if (rounds_before) x = stored(x);
  x += residual;
  return stored(x);
}

/// The largest share of the bound that such a kernel takes, where residuals cancel what they are
/// added to.
double largest_share(bool rounds_before, bool declares_it) {
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Problem problem = problem_from_string("h2 q5 k3 d8 bf16 gate_given residual_given");
    Inputs inputs = drawn_with_epilogue(problem, seed);
    const Answer plain = exact_answer(without_epilogue(problem), inputs, plan_for(problem));
    for_each_output(problem, [&](auto b, auto h, auto n, auto c) {
      inputs[forward::residual].at(b, h, n, c) = -static_cast<float>(
          round_to(ElementType::bf16,
                   plain[forward::o].value.at(b, h, n, c) * inputs[forward::gate].at(b, h, n, c)));
    });
    PrecisionPlan plan = plan_for(problem);
    plan.rounds_before_epilogue = declares_it;
    const Answer answer = exact_answer(problem, inputs, plan);
    for_each_output(problem, [&](auto b, auto h, auto n, auto c) {
      const double got = computed(ElementType::bf16, plain[forward::o].value.at(b, h, n, c),
                                  inputs[forward::gate].at(b, h, n, c),
                                  inputs[forward::residual].at(b, h, n, c), rounds_before);
      const double error = std::abs(got - answer[forward::o].value.at(b, h, n, c));
      largest = std::max(largest, error / answer[forward::o].bound.at(b, h, n, c));
    });
  }
  return largest;
}

TEST(EpilogueBound, HoldsForAKernelThatRoundsAsItDeclaresAndForNoOther) {
  EXPECT_LE(largest_share(false, false), 1);
  EXPECT_LE(largest_share(true, true), 1);
  EXPECT_GT(largest_share(true, true), 0.25);  // not far above what may happen
  EXPECT_GT(largest_share(true, false), 1);
}

TEST(EpilogueBound, IsInfiniteWhereTheProductOrTheSumCanOverflow) {
  const Problem problem = problem_from_string("q1 k3 d1 gate_given residual_given");
  const auto bound_of = [&](float gate, float residual) {
    Inputs inputs = drawn_with_epilogue(problem, 1);
    for (float& v : inputs[forward::v].values()) v = 2;
    inputs[forward::gate].at(0, 0, 0, 0) = gate;
    inputs[forward::residual].at(0, 0, 0, 0) = residual;
    return exact_answer(problem, inputs, plan_for(problem))[forward::o].bound.at(0, 0, 0, 0);
  };
  EXPECT_LT(bound_of(0x1p120F, 0), unbounded);
  EXPECT_EQ(bound_of(0x1p127F, 0), unbounded);
  EXPECT_EQ(bound_of(0x1p126F, 0x1p127F), unbounded);
  EXPECT_LT(bound_of(0, 1), unbounded);
}

}  // namespace
}  // namespace attest
