#include "core/inputs/input_family.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

const Problem problem{.batch = 2,
                      .query_heads = 4,
                      .kv_heads = 2,
                      .query_len = 17,
                      .key_len = 33,
                      .head_dim = 24,
                      .scale = default_scale(24)};

double logit(const Inputs& inputs, std::int64_t h, std::int64_t query, std::int64_t key) {
  double dot = 0;
  for (std::int64_t d = 0; d < problem.head_dim; ++d) {
    dot += static_cast<double>(inputs[forward::q].at(0, h, query, d)) *
           inputs[forward::k].at(0, problem.kv_head_of(h), key, d);
  }
  return problem.scale * dot;
}

TEST(InputFamily, EveryValueIsFiniteAndRepresentableInEveryFormat) {
  for (const InputFamily* of_attention : families_of(forward_operation)) {
    const InputFamily& family = *of_attention;
    if (!family.head_dims.empty()) continue;
    for (const ElementType type : all_element_types()) {
      Problem p = problem;
      p.element_type = type;
      for (const double magnitude : family.magnitudes) {
        const Inputs inputs =
            make_inputs(p, {.family = family.name, .seed = 3, .magnitude = magnitude});
        for (const Tensor<float>* tensor :
             {&inputs[forward::q], &inputs[forward::k], &inputs[forward::v]}) {
          for (const float value : tensor->values()) {
            ASSERT_TRUE(std::isfinite(value)) << family.name;
            ASSERT_EQ(round_to(type, value), value) << family.name;
          }
        }
      }
    }
  }
}

TEST(InputFamily, AScaleOfZeroStillGivesFiniteValues) {
  Problem p = problem;
  p.scale = 0.0F;
  for (const InputFamily* of_attention : families_of(forward_operation)) {
    const InputFamily& family = *of_attention;
    if (!family.head_dims.empty()) continue;
    const Inputs inputs =
        make_inputs(p, {.family = family.name, .magnitude = family.magnitudes.back()});
    for (const float value : inputs[forward::k].values())
      ASSERT_TRUE(std::isfinite(value)) << family.name;
  }
}

TEST(InputFamily, TheSameSpecGivesTheSameValuesAndAnotherSeedOthers) {
  const auto values = [](std::uint64_t seed) {
    const Inputs inputs = make_inputs(problem, {.family = "outliers", .seed = seed});
    return std::vector<float>(inputs[forward::k].values().begin(),
                              inputs[forward::k].values().end());
  };
  EXPECT_EQ(values(1), values(1));
  EXPECT_NE(values(1), values(2));
}

TEST(InputFamily, AscendingMaximaMoveTheMaximumForwardAndDescendingOnesKeepItFirst) {
  const Inputs up = make_inputs(problem, {.family = "ascending_maxima", .magnitude = 80});
  const Inputs down = make_inputs(problem, {.family = "descending_maxima", .magnitude = 80});
  for (std::int64_t key = 8; key < problem.key_len; key += 8) {
    EXPECT_GT(logit(up, 0, 0, key), logit(up, 0, 0, key - 8));
    EXPECT_LT(logit(down, 0, 0, key), logit(down, 0, 0, key - 8));
  }
}

TEST(InputFamily, AllNegativeReachesBelowEverySentinelInUse) {
  const Inputs inputs = make_inputs(problem, {.family = "all_negative", .magnitude = 2e10});
  for (std::int64_t key = 0; key < problem.key_len; ++key)
    EXPECT_LT(logit(inputs, 3, 5, key), -1e10);
}

TEST(InputFamily, ADominantKeyStandsOutByItsMagnitude) {
  const Inputs inputs =
      make_inputs(problem, {.family = "dominant_key", .seed = 8, .magnitude = 100});
  std::vector<double> logits;
  for (std::int64_t key = 0; key < problem.key_len; ++key)
    logits.push_back(logit(inputs, 0, 0, key));
  std::ranges::sort(logits, std::greater{});
  EXPECT_GT(logits[0], 10 * logits[1]);
}

TEST(InputFamily, TiesRepeatExactlyEqualLogits) {
  const Inputs inputs = make_inputs(problem, {.family = "ties", .seed = 2});
  std::set<double> distinct;
  for (std::int64_t key = 0; key < problem.key_len; ++key)
    distinct.insert(logit(inputs, 1, 3, key));
  EXPECT_LE(distinct.size(), 3U);
}

TEST(InputFamily, OutliersAppearAtTheirPublishedRate) {
  Problem large = problem;
  large.key_len = 4096;
  const Inputs inputs = make_inputs(large, {.family = "outliers", .seed = 1});
  // |N(0, 1)| > 6 has probability 2e-9; an outlier N(0, 101) exceeds 6 with probability 0.55.
  const auto count =
      std::ranges::count_if(inputs[forward::k].values(), [](float x) { return std::abs(x) > 6; });
  const double expected = 0.55 * 0.001 * static_cast<double>(inputs[forward::k].size());
  EXPECT_LE(std::abs(static_cast<double>(count) - expected), 6 * std::sqrt(expected));
}

TEST(InputFamily, RoundingToIntegersLeavesOnlyWholeNumbers) {
  const Inputs inputs = make_inputs(problem, {.seed = 5, .round_to_integers = true});
  for (const float value : inputs[forward::v].values()) EXPECT_EQ(value, std::nearbyint(value));
}

TEST(InputFamily, AnUnknownNameIsRefusedAndATakenOneToo) {
  EXPECT_THROW((void)input_family("gaussian"), InvalidInput);
  EXPECT_THROW(add_input_family(input_family("normal")), InvalidInput);
}

}  // namespace
}  // namespace attest
