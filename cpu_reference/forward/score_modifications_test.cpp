// Score modifications in the oracle, the f64 reference and the bound: each said a second way by
// plain attention or by another modification, and the reference against the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/accumulation.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/bound_constants.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/forward/reference_f64_test.hpp"

namespace attest {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

Inputs drawn_inputs(const Problem& problem, std::uint64_t seed, double magnitude = 1) {
  return make_inputs(problem, {.family = "normal", .seed = seed, .magnitude = magnitude});
}

/// Calls visit(b, h, n) for every row that exists.
template <typename Visit>
void for_each_row(const Problem& problem, const Visit& visit) {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len_of(b); ++n) visit(b, h, n);
    }
  }
}

/// Quad's roundings, of values of the size of 1: far below any error of a formula.
void expect_same(const Quad& got, const Quad& want, const std::string& what) {
  if (got == want) return;
  const Quad size = std::max<Quad>(1, abs(want));
  EXPECT_LE(abs(Quad(got - want)), size * std::numeric_limits<Quad>::epsilon() * 1024) << what;
}

void expect_same_row(const OracleRow<Quad>& got, const OracleRow<Quad>& want,
                     const std::string& what) {
  expect_same(got.lse, want.lse, what);
  for (std::size_t c = 0; c < want.o.size(); ++c) expect_same(got.o[c], want.o[c], what);
}

TEST(ScoreModificationsExact, ASinkIsAKeyOfThatScoreAndOfValueZero) {
  const Problem with_sink = problem_from_string("h4/2 q5 k6 d8 causal_bottom_right sinks_given");
  Problem with_key = problem_from_string("h4/2 q5 k7 d8 causal_bottom_right bias_heads");
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Inputs inputs = drawn_inputs(with_sink, seed);
    Inputs more{inputs[forward::q], Tensor<float>(key_shape(with_key)),
                Tensor<float>(value_shape(with_key))};
    // A key of zeros before the others; whom the sink hides it is hidden from.
    for (const InputIndex input : {forward::k, forward::v}) {
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t j = 0; j < 6; ++j) {
          std::ranges::copy(inputs[input].row(0, h, j), more[input].row(0, h, j + 1).begin());
        }
      }
    }
    more[forward::bias] = Tensor<float>(forward_operation[forward::bias].shape(with_key));
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t n = 0; n < 5; ++n) {
        more[forward::bias].at(0, h, n, 0) = inputs[forward::sinks].at(0, h, 0, 0);
      }
    }
    for_each_row(with_sink, [&](auto b, auto h, auto n) {
      expect_same_row(oracle_row<Quad>(with_sink, inputs, b, h, n),
                      oracle_row<Quad>(with_key, more, b, h, n), std::to_string(seed));
    });
  }
}

TEST(ScoreModificationsExact, ARowThatSeesNoKeyHasItsSinkAsLse) {
  const Problem problem = problem_from_string("h2 q5 k2 d8 causal_bottom_right sinks_given");
  Inputs inputs = drawn_inputs(problem, 1);
  inputs[forward::sinks].at(0, 0, 0, 0) = 3.25F;
  inputs[forward::sinks].at(0, 1, 0, 0) = minus_infinity;
  const Answer answer = exact_answer(problem, inputs, plan_for(problem));
  for (const std::int64_t n : {0, 1, 2}) {
    EXPECT_EQ(oracle_row<Quad>(problem, inputs, 0, 0, n).lse, Quad(3.25));
    EXPECT_EQ(answer[forward::lse].value.at(0, 0, n, 0), 3.25);
    EXPECT_EQ(answer[forward::lse].value.at(0, 1, n, 0), minus_infinity);
    EXPECT_EQ(answer[forward::lse].bound.at(0, 1, n, 0), 0);
    for (const std::int64_t h : {0, 1}) {
      EXPECT_EQ(answer[forward::o].value.at(0, h, n, 7), 0);
      EXPECT_EQ(answer[forward::o].bound.at(0, h, n, 7), 0);
    }
  }
}

// The last column of Q is 1 and that of K what is added, over the scale, a power of two.
TEST(ScoreModificationsExact, ABiasOfKeysIsOneMoreColumnOfQAndK) {
  Problem biased = problem_from_string("h2 q5 k6 d8 bias_shared");
  Problem wider = problem_from_string("h2 q5 k6 d9");
  biased.scale = wider.scale = 0.25F;
  Inputs inputs = drawn_inputs(biased, 2);
  Inputs more{Tensor<float>(query_shape(wider)), Tensor<float>(key_shape(wider)),
              inputs[forward::v]};
  more[forward::v] = Tensor<float>(value_shape(wider));
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t j = 0; j < 6; ++j) {
      const float added = static_cast<float>(j) - 2.5F;
      std::ranges::copy(inputs[forward::k].row(0, h, j), more[forward::k].row(0, h, j).begin());
      std::ranges::copy(inputs[forward::v].row(0, h, j), more[forward::v].row(0, h, j).begin());
      more[forward::k].at(0, h, j, 8) = added * 4;
      for (std::int64_t n = 0; n < 5; ++n) {
        inputs[forward::bias].at(0, 0, n, j) = added;
        std::ranges::copy(inputs[forward::q].row(0, h, n), more[forward::q].row(0, h, n).begin());
        more[forward::q].at(0, h, n, 8) = 1;
      }
    }
  }
  for_each_row(biased, [&](auto b, auto h, auto n) {
    OracleRow<Quad> want = oracle_row<Quad>(wider, more, b, h, n);
    want.o.resize(8);
    expect_same_row(oracle_row<Quad>(biased, inputs, b, h, n), want, "bias");
  });
}

TEST(ScoreModificationsExact, ABiasIsAddedAfterTheSoftcap) {
  Problem problem = problem_from_string("q3 k1 d8 softcap2 bias_shared slopes_given");
  Inputs inputs = drawn_inputs(problem, 3, 100);
  inputs[forward::bias].at(0, 0, 0, 0) = 50;
  inputs[forward::slopes].at(0, 0, 0, 0) = 8;
  // One key: LSE is its score. Distance of query 0 from key 0: two, as the last ones meet.
  const Quad capped =
      oracle_row<Quad>(problem_from_string("q3 k1 d8 softcap2"), inputs, 0, 0, 0).lse;
  expect_same(oracle_row<Quad>(problem, inputs, 0, 0, 0).lse, capped - 16 + 50, "order");
}

TEST(ScoreModificationsExact, DropoutScalesWhatItLeavesAndKeepsLse) {
  for (const std::string p : {"dropout0.1", "dropout0.5", "dropout1"}) {
    const Problem plain = problem_from_string("h2 q9 k11 d8 causal_top_left");
    const Problem dropped = problem_from_string("h2 q9 k11 d8 causal_top_left philox5 " + p);
    const Inputs inputs = drawn_inputs(plain, 4);
    for_each_row(plain, [&](auto b, auto h, auto n) {
      const auto without = oracle_row<Quad>(plain, inputs, b, h, n);
      auto want = without;
      std::ranges::fill(want.o, Quad(0));
      for (std::size_t j = 0; j < without.keys.size() && dropped.dropout < 1; ++j) {
        if (!keeps_weight(dropped, b, h, n, without.keys[j])) continue;
        const Quad weight = without.weights[j] / (1 - Quad(dropped.dropout));
        for (std::int64_t c = 0; c < 8; ++c) {
          want.o[static_cast<std::size_t>(c)] +=
              weight * inputs[forward::v].at(b, h, without.keys[j], c);
        }
      }
      expect_same_row(oracle_row<Quad>(dropped, inputs, b, h, n), want, p);
    });
  }
}

std::vector<Problem> modified_problems() {
  std::vector<Problem> problems;
  for (const std::string what :
       {"sinks_given", "slopes_given", "bias_full", "bias_heads sinks_given",
        "slopes_given bias_entries", "dropout0.5 philox3", "prefix5 documents9 bias_shared",
        "slopes_given bias_shared sinks_given dropout0.1 softcap3"}) {
    for (const std::string shape :
         {"b2 h4/2 q17 k13 d9 causal_bottom_right", "b3 h2/1 q5 k33 d16 dv20 lengths5 padding7",
          "h3 q1 k1 d8 causal_top_left", "h2 q3 k0 d8"}) {
      problems.push_back(problem_from_string(shape + ' ' + what));
    }
  }
  return problems;
}

TEST(ScoreModificationsReference, StaysWithinItsOwnErrorOfTheOracle) {
  for (const Problem& problem : modified_problems()) {
    for (const double magnitude : {1.0, 30.0, 1e6}) {
      const Inputs inputs = drawn_inputs(problem, 6, magnitude);
      const Answer answer = exact_answer(problem, inputs, plan_for(problem));
      const Certificate certificate = certify_rows(problem, inputs, answer, 5, 12);
      EXPECT_TRUE(certificate.holds()) << to_string(problem) << ": " << certificate.worst_ratio;
    }
  }
}

TEST(ScoreModificationsReference, HasTheBoundOfTheOracle) {
  for (const Problem& problem : modified_problems()) {
    for (const Rescale rescale : {Rescale::deferred, Rescale::none}) {
      PrecisionPlan plan = plan_for(problem);
      plan.rescale = rescale;
      const Inputs inputs = drawn_inputs(problem, 7);
      const Answer answer = exact_answer(problem, inputs, plan);
      // As in ReferenceF64.HasTheBoundOfTheOracle.
      const double allowed = 0x1p-20;
      for_each_row(problem, [&](auto b, auto h, auto n) {
        const auto row = oracle_row<Quad>(problem, inputs, b, h, n);
        const auto bound = oracle_bound(problem, inputs, b, h, row, plan);
        const auto expect_near = [&](double got, double want) {
          EXPECT_LE(std::abs(got - want), allowed * want)
              << to_string(problem) << ' ' << b << ' ' << h << ' ' << n;
        };
        for (std::size_t c = 0; c < row.o.size(); ++c) {
          const auto column = static_cast<std::int64_t>(c);
          expect_near(answer[forward::o].bound.at(b, h, n, column) -
                          answer[forward::o].own_error.at(b, h, n, column),
                      static_cast<double>(bound.o[c]));
        }
        expect_near(answer[forward::lse].bound.at(b, h, n, 0) -
                        answer[forward::lse].own_error.at(b, h, n, 0),
                    static_cast<double>(bound.lse));
      });
    }
  }
}

TEST(ScoreModificationsReference, ThreadsDoNotChangeABit) {
  const Problem problem = problem_from_string("b2 h4/2 q17 k13 d9 sinks_given bias_full");
  const Inputs inputs = drawn_inputs(problem, 8);
  const Answer one = exact_answer(problem, inputs, plan_for(problem), 1);
  const Answer many = exact_answer(problem, inputs, plan_for(problem), 5);
  for (const OutputIndex output : {forward::o, forward::lse}) {
    EXPECT_TRUE(std::ranges::equal(one[output].value.values(), many[output].value.values()));
    EXPECT_TRUE(std::ranges::equal(one[output].bound.values(), many[output].bound.values()));
  }
}

TEST(ScoreModificationsReference, WhatIsNoNumberMakesNaNOfItsRows) {
  const Problem problem =
      problem_from_string("h2 q3 k4 d8 sinks_given slopes_given bias_full causal_bottom_right");
  const Inputs clean = drawn_inputs(problem, 9);
  for (const InputIndex input : {forward::sinks, forward::slopes, forward::bias}) {
    Inputs dirty = clean;
    dirty[input].values().back() = std::nanf("");
    const Answer answer = exact_answer(problem, dirty, plan_for(problem));
    EXPECT_TRUE(std::isnan(answer[forward::o].value.at(0, 1, 2, 0)));
    EXPECT_TRUE(std::isnan(answer[forward::lse].value.at(0, 1, 2, 0)));
    EXPECT_FALSE(std::isnan(answer[forward::lse].value.at(0, 0, 2, 0)));
    EXPECT_TRUE(certify_rows(problem, dirty, answer, 1, 20).holds());
  }
}

// What is added is rounded: the bound of a row that adds numbers far above its scores grows with
// them, in proportion.
TEST(ScoreModificationsReference, TheBoundGrowsWithWhatIsAdded) {
  const Problem problem = problem_from_string("q3 k40 d8 bias_full");
  double before = 0;
  for (const float size : {1.0F, 64.0F, 4096.0F}) {
    Inputs inputs = drawn_inputs(problem, 10);
    std::ranges::fill(inputs[forward::bias].values(), size);
    const Answer answer = exact_answer(problem, inputs, plan_for(problem));
    const double bound = answer[forward::lse].bound.at(0, 0, 1, 0);
    EXPECT_GT(bound, before);
    EXPECT_GE(bound, static_cast<double>(size) * 0x1p-24);
    before = bound;
  }
}

// Keys that a row sees lie in as many steps of a tensor core as their places say, not their number.
TEST(ScoreModificationsReference, HiddenKeysCostStepsOfATensorCoreWhateverHidesThem) {
  PrecisionPlan plan;
  plan.value = hopper();
  const auto numerator = [&](const std::string& problem, std::int64_t visible_keys) {
    return bound_constants(plan, problem_from_string("q3 k160 d8 " + problem), visible_keys, {})
        .numerator;
  };
  EXPECT_EQ(numerator("bias_full", 20), numerator("padding7", 20));
  EXPECT_EQ(numerator("lists7", 20), numerator("padding7", 20));
  EXPECT_GT(numerator("bias_full", 20), numerator("", 20));
  EXPECT_EQ(numerator("documents7", 20), numerator("window_top_left left9 right10", 20));
  EXPECT_GT(numerator("documents7", 20), numerator("", 20));
}

}  // namespace
}  // namespace attest
