#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/select.hpp"
#include "cpu_reference/reference.hpp"
#include "cpu_reference/select/selection.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

ScoreRange between(double low, double high) {
  return {.value = (low + high) / 2, .lowest = low, .highest = high};
}

/// The definition once more: every set of `count` places of which no one left out is surely above
/// one that is in.
std::vector<std::set<std::size_t>> reachable_sets(const std::vector<ScoreRange>& ranges,
                                                  std::size_t count) {
  std::vector<std::set<std::size_t>> sets;
  for (std::size_t bits = 0; bits < std::size_t{1} << ranges.size(); ++bits) {
    std::set<std::size_t> set;
    double least = infinity, greatest_left = -infinity;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if ((bits >> i & 1U) != 0) {
        set.insert(i);
        least = std::min(least, ranges[i].highest);
      } else {
        greatest_left = std::max(greatest_left, ranges[i].lowest);
      }
    }
    if (set.size() == count && !(greatest_left > least)) sets.push_back(set);
  }
  return sets;
}

TEST(Selection, HoldsEverySetThatScoresInTheirRangesMayHave) {
  std::uint64_t state = 1;
  const auto drawn = [&](std::uint64_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>((state >> 33U) % limit);
  };
  int open = 0;
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<ScoreRange> ranges;
    for (int i = 0; i < 7; ++i) {
      const double low = drawn(9);
      ranges.push_back(between(low, low + drawn(4)));
    }
    const std::vector<std::int64_t> keys{3, 5, 6, 10, 11, 20, 41};
    for (std::size_t count = 0; count <= keys.size(); ++count) {
      const Selection selection =
          possible_selections(keys, ranges, static_cast<std::int64_t>(count));
      std::set<std::size_t> in_some;
      for (const auto& set : reachable_sets(ranges, count)) {
        std::size_t i = 0;
        for (const std::size_t place : set) {
          in_some.insert(place);
          EXPECT_LE(selection.least[i], keys[place]);
          EXPECT_GE(selection.greatest[i], keys[place]);
          ++i;
        }
      }
      for (std::size_t i = 0; i < keys.size(); ++i) {
        EXPECT_TRUE(!selection.is_out[i] || !in_some.contains(i));
        EXPECT_EQ(!selection.is_out[i], in_some.contains(i)) << "no wider than it must be";
      }
      open += selection.least == selection.greatest ? 0 : 1;
    }
  }
  EXPECT_GT(open, 20);
}

Problem small_problem() {
  return {.operation = &select_operation,
          .query_heads = 2,
          .kv_heads = 1,
          .key_len = 4,
          .head_dim = 2,
          .scale = 0.5F,
          .top_k = 2};
}

Inputs inputs_of(const Problem& problem, std::vector<float> q, std::vector<float> k,
                 std::vector<float> weights) {
  Inputs inputs;
  for (const auto& [index, values] : {std::pair(selecting::q, q), std::pair(selecting::k, k),
                                      std::pair(selecting::weights, weights)}) {
    inputs[index] = Tensor<float>(select_operation[index].shape(problem));
    std::ranges::copy(values, inputs[index].values().begin());
  }
  return inputs;
}

TEST(SelectReference, AScoreIsTheWeightedSumOfWhatIsAboveZero) {
  const Problem problem = small_problem();
  const Inputs inputs = inputs_of(problem, {1, 0, 0, 2}, {4, 1, -4, 1, 2, -3, -1, -1}, {1, -3});
  // 0.5 * 4 - 3 * 1; - 3 * 1; 0.5 * 2; 0.
  const std::vector<ScoreRange> scores = score_ranges(problem, inputs, {}, 0, 0, {0, 1, 2, 3});
  EXPECT_EQ(scores[0].value, -1);
  EXPECT_EQ(scores[1].value, -3);
  EXPECT_EQ(scores[2].value, 1);
  EXPECT_EQ(scores[3].value, 0);
  // Only what is above 0 is off: of key 3 what underflow may lose is left.
  EXPECT_LT(scores[3].error(), 0x1p-140);
  EXPECT_GT(scores[0].error(), 0x1p-24);
  const Answer answer = reference_of(select_operation).exact(problem, inputs, SelectRoundings{});
  EXPECT_EQ(answer[selecting::counts].value.at(0, 0, 0, 0), 2);
  EXPECT_EQ(answer[selecting::keys].value.at(0, 0, 0, 0), 2);
  EXPECT_EQ(answer[selecting::keys].value.at(0, 0, 0, 1), 3);
  EXPECT_EQ(answer[selecting::keys].bound.at(0, 0, 0, 0), 0);
  EXPECT_EQ(answer[selecting::scores].value.at(0, 0, 0, 0), 1);
}

TEST(SelectReference, NanAndInfinityComeFirstAndMinusInfinityScoresNothing) {
  const Problem problem = small_problem();
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const Inputs inputs = inputs_of(problem, {1, 1, 1, 1}, {9, 9, nan, 1, inf, 1, -inf, 1}, {1, 1});
  const std::vector<ScoreRange> scores = score_ranges(problem, inputs, {}, 0, 0, {0, 1, 2, 3});
  EXPECT_TRUE(std::isnan(scores[1].value));
  EXPECT_EQ(scores[1].lowest, infinity);
  EXPECT_EQ(scores[2].lowest, infinity);
  EXPECT_EQ(scores[3].value, 0);
  const Answer answer = reference_of(select_operation).exact(problem, inputs, SelectRoundings{});
  EXPECT_EQ(answer[selecting::keys].value.at(0, 0, 0, 0), 1);
  EXPECT_EQ(answer[selecting::keys].value.at(0, 0, 0, 1), 2);
  EXPECT_EQ(answer[selecting::keys].bound.at(0, 0, 0, 1), 0);
}

TEST(SelectReference, WhatCanOverflowMayRankAnywhere) {
  Problem problem = small_problem();
  problem.scale = 1e30F;
  const Inputs inputs = inputs_of(problem, {1e20F, 0, 0, 0}, {1, 0, 2, 0, 3, 0, -1, 0}, {1, 1});
  for (const ScoreRange& score : score_ranges(problem, inputs, {}, 0, 0, {0, 1, 2, 3})) {
    EXPECT_EQ(score.lowest, -infinity);
    EXPECT_EQ(score.error(), infinity);
  }
}

TEST(SelectReference, CertifiesItsAnswersInEveryFamily) {
  Problem problem = problem_from_string("select b2 h6/2 q7 k90 d24 bf16 causal_bottom_right top17");
  problem.padding_seed = 4;
  problem.length_seed = 9;
  for (const InputFamily* const family : families_of(select_operation)) {
    if (!family->head_dims.empty()) continue;
    const Inputs inputs = make_inputs(
        problem, {.family = family->name, .seed = 3, .magnitude = family->magnitudes[0]});
    const Reference& reference = reference_of(select_operation);
    Answer answer = reference.exact(problem, inputs, SelectRoundings{});
    const Certificate certificate = reference.certify(problem, inputs, answer, 5, 20);
    EXPECT_TRUE(certificate.holds()) << family->name;
    EXPECT_GT(certificate.rows, 0);
  }
}

// score_ranks looked for a step through no keys that meets all of them, and did not come back.
TEST(SelectReference, WithoutKeysNothingIsChosenInAnyFamily) {
  const Problem problem = problem_from_string("select h2/1 q3 k0 d8 fp32 top4");
  for (const InputFamily* const family : families_of(select_operation)) {
    if (!family->head_dims.empty()) continue;
    const Inputs inputs = make_inputs(
        problem, {.family = family->name, .seed = 3, .magnitude = family->magnitudes[0]});
    const Answer answer = reference_of(select_operation).exact(problem, inputs, SelectRoundings{});
    EXPECT_EQ(answer[selecting::counts].value.at(0, 0, 2, 0), 0) << family->name;
    EXPECT_EQ(answer[selecting::keys].value.at(0, 0, 2, 3), -1) << family->name;
  }
}

TEST(SelectReference, DoesNotCertifyAnotherChoice) {
  const Problem problem = problem_from_string("select h2/1 q1 k16 d8 fp32 top4");
  const Inputs inputs = make_inputs(problem, {.family = "score_ranks", .seed = 3, .magnitude = 1});
  const Reference& reference = reference_of(select_operation);
  Answer answer = reference.exact(problem, inputs, SelectRoundings{});
  const auto chosen = answer[selecting::keys].value.row(0, 0, 0);
  double other = 0;
  while (std::ranges::find(chosen, other) != chosen.end()) ++other;
  EXPECT_TRUE(reference.certify(problem, inputs, answer, 5, 20).holds());
  answer[selecting::keys].value.at(0, 0, 0, 2) = other;
  EXPECT_FALSE(reference.certify(problem, inputs, answer, 5, 20).holds());
}

}  // namespace
}  // namespace attest
