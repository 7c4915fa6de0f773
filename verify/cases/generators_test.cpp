#include "verify/cases/generators.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/coverage.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

const KernelInfo& k3() {
  return *find_kernel("k3_sequence_parallel", Executor::simt);
}

/// A kernel that offers everything that a Problem has.
const KernelInfo& every_shape() {
  return *find_kernel("m6_every_shape", Executor::cpu);
}

std::vector<Case> draws(const KernelInfo& kernel, std::uint64_t count) {
  std::vector<Case> cases;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (const auto c = draw_case(kernel, {}, 1, i)) cases.push_back(*c);
  }
  return cases;
}

std::vector<Case> draws(std::uint64_t count) {
  return draws(k3(), count);
}

bool is_dense(const Problem& p) {
  return !is_window(p.mask) && p.softcap == 0 && p.value_dim == 0 && p.length_seed == 0 &&
         p.padding_seed == 0 && p.query_len > 0;
}

TEST(Generators, ACaseIsAPureFunctionOfSeedAndIndex) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(draw_case(k3(), {}, 7, i), draw_case(k3(), {}, 7, i));
    EXPECT_NE(draw_case(k3(), {}, 7, i), draw_case(k3(), {}, 8, i));
  }
}

TEST(Generators, EveryDrawIsAValidProblemThatTheKernelSupports) {
  const std::vector<Case> cases = draws(300);
  EXPECT_EQ(cases.size(), 300U);
  for (const Case& c : cases) {
    EXPECT_NO_THROW(validate(c.problem)) << to_string(c);
    EXPECT_EQ(why_unsupported(k3(), c.problem, c.plan), std::nullopt) << to_string(c);
  }
}

// Each of these hides a bug that nothing else shows. A feature that a default run does not reach is
// a failure here.
TEST(Generators, ADefaultRunReachesEveryFeature) {
  const std::map<std::string, std::function<bool(const Case&)>> features{
      {"query tail", [](const Case& c) { return c.problem.query_len % c.plan.query_tile != 0; }},
      {"key tail", [](const Case& c) { return c.problem.key_len % c.plan.key_tile != 0; }},
      {"whole key tiles",
       [](const Case& c) {
         return c.problem.key_len > 0 && c.problem.key_len % c.plan.key_tile == 0;
       }},
      {"one key past a tile",
       [](const Case& c) {
         return c.problem.key_len % c.plan.key_tile == 1 && c.problem.key_len > 1;
       }},
      {"one key short of a tile",
       [](const Case& c) { return c.problem.key_len % c.plan.key_tile == c.plan.key_tile - 1; }},
      {"one query", [](const Case& c) { return c.problem.query_len == 1; }},
      {"one key", [](const Case& c) { return c.problem.key_len == 1; }},
      {"no key", [](const Case& c) { return c.problem.key_len == 0; }},
      {"more queries than keys",
       [](const Case& c) { return c.problem.query_len > c.problem.key_len; }},
      {"fewer queries than keys",
       [](const Case& c) { return c.problem.query_len < c.problem.key_len; }},
      {"tile larger than the keys",
       [](const Case& c) { return c.plan.key_tile > c.problem.key_len; }},
      {"several key tiles", [](const Case& c) { return c.problem.key_len > 3 * c.plan.key_tile; }},
      {"group size 3",
       [](const Case& c) { return c.problem.query_heads == 3 * c.problem.kv_heads; }},
      {"group size 5",
       [](const Case& c) { return c.problem.query_heads == 5 * c.problem.kv_heads; }},
      {"several batches", [](const Case& c) { return c.problem.batch > 1; }},
      {"head dim not a multiple of 8", [](const Case& c) { return c.problem.head_dim % 8 != 0; }},
      {"head dim above 64", [](const Case& c) { return c.problem.head_dim > 64; }},
      {"empty rows under a causal mask",
       [](const Case& c) { return c.problem.key_len > 0 && c.problem.visible_keys(0) == 0; }},
      {"negative scale", [](const Case& c) { return c.problem.scale < 0; }},
      {"K and V in different layouts",
       [](const Case& c) { return !(c.layouts[forward::k] == c.layouts[forward::v]); }},
      {"misaligned base", [](const Case& c) { return c.layouts[forward::q].base_offset % 4 != 0; }},
      {"gaps between rows", [](const Case& c) { return c.layouts[forward::o].row_gap > 0; }},
  };
  std::map<std::string, int> reached;
  std::map<std::string, int> families;
  for (const Case& c : draws(400)) {
    for (const auto& [name, holds] : features) reached[name] += holds(c) ? 1 : 0;
    ++families[c.inputs.family];
  }
  for (const auto& [name, holds] : features) EXPECT_GT(reached[name], 0) << name;
  for (const InputFamily* family : families_of(forward_operation))
    EXPECT_GT(families[family->name], 0) << family->name;
}

TEST(Generators, AKernelThatOffersNothingMoreGetsDenseProblemsOnly) {
  for (const Case& c : draws(200)) EXPECT_TRUE(is_dense(c.problem)) << to_string(c);
}

// The rows of features.cpp that need more than a usual kernel, all of them by one kernel that
// offers everything, and half of its cases still dense.
TEST(Generators, AKernelThatOffersEveryShapeGetsAllOfThem) {
  Coverage reached;
  std::size_t dense = 0;
  const std::vector<Case> cases = draws(every_shape(), 1500);
  for (const Case& c : cases) {
    EXPECT_NO_THROW(validate(c.problem)) << to_string(c);
    dense += is_dense(c.problem) ? 1 : 0;
    for (const std::string& name : features_of(every_shape(), c)) ++reached[name];
  }
  for (const Feature& feature : all_features()) {
    if (!feature.needs.starts_with("a kernel")) continue;
    const std::set<std::string> of_others{"a kernel with plans that name no tile",
                                          "a kernel that takes pages",
                                          "a kernel of gradients that takes dLSE",
                                          "a kernel with key_split_rule",
                                          "a kernel of several ranks",
                                          "a kernel of codes",
                                          "a kernel that makes codes",
                                          "a kernel that merges parts",
                                          "a kernel that chooses keys"};
    if (of_others.contains(feature.needs)) continue;
    EXPECT_GT(reached[feature.name], 0) << feature.name;
  }
  EXPECT_GT(2 * dense, cases.size());
  EXPECT_LT(3 * dense, 2 * cases.size());
}

TEST(Generators, AKernelThatTakesDLseDrawsItInAThirdOfTheCasesThatItWouldDrawWithout) {
  // Score modifications, which are drawn after it, it has none.
  const KernelInfo& takes = *find_kernel("backward_standard", Executor::cpu);
  KernelInfo takes_none = takes;
  takes_none.features.lse_gradient = false;
  const std::vector<Case> with = draws(takes, 300), without = draws(takes_none, 300);
  ASSERT_EQ(with.size(), without.size());
  Coverage reached;
  int given = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(without[i].problem.lse_gradient, LseGradient::zero);
    given += with[i].problem.lse_gradient == LseGradient::given ? 1 : 0;
    for (const std::string& name : features_of(takes, with[i])) ++reached[name];
    Case c = with[i];
    c.problem.lse_gradient = LseGradient::zero;
    EXPECT_EQ(c, without[i]);
  }
  EXPECT_GT(given, 60);
  EXPECT_LT(given, 140);
  for (const Feature& feature : all_features()) {
    if (feature.needs == "a kernel of gradients that takes dLSE") {
      EXPECT_GT(reached[feature.name], 0) << feature.name;
    }
  }
}

TEST(Generators, EverySimplerCaseIsSupportedAndAnother) {
  for (const KernelInfo* kernel : {&k3(), &every_shape()}) {
    for (const Case& c : draws(*kernel, 40)) {
      for (const Case& simpler : simpler_cases(*kernel, c)) {
        EXPECT_NE(simpler, c);
        EXPECT_NO_THROW(validate(simpler.problem));
        EXPECT_EQ(why_unsupported(*kernel, simpler.problem, simpler.plan), std::nullopt);
      }
    }
  }
}

/// Shrinks draws of the kernel that has every shape, and looks at the smallest that fails.
void expect_shrunk(const std::function<bool(const Case&)>& fails,
                   const std::function<void(const Problem&)>& expect_smallest) {
  int shrunk = 0;
  for (const Case& c : draws(every_shape(), 200)) {
    if (!fails(c)) continue;
    ++shrunk;
    expect_smallest(shrink(every_shape(), c, fails, 2000).problem);
  }
  EXPECT_GT(shrunk, 5);
}

TEST(Generators, ShrinkingEndsAtADenseProblemWhereNoExtraIsAtFault) {
  expect_shrunk(
      [](const Case& c) {
        return c.problem.key_len >= 7 && !is_dense(c.problem) && c.problem.query_len > 0;
      },
      [](const Problem& p) {
        const int extras = (is_window(p.mask) ? 1 : 0) + (p.softcap != 0 ? 1 : 0) +
                           (p.value_dim != 0 ? 1 : 0) + (p.length_seed != 0 ? 1 : 0) +
                           (p.padding_seed != 0 ? 1 : 0);
        EXPECT_EQ(extras, 1) << to_string(p);
      });
  expect_shrunk([](const Case& c) { return c.problem.key_len >= 7; },
                [](const Problem& p) { EXPECT_TRUE(is_dense(p)) << to_string(p); });
}

TEST(Generators, ShrinkingEndsAtTheSmallestWindowThatStillFails) {
  const auto fails = [](const Case& c) {
    return is_window(c.problem.mask) && c.problem.window.left >= 5 && c.problem.key_len >= 9;
  };
  expect_shrunk(fails, [](const Problem& p) {
    EXPECT_EQ(p.window.left, 5) << to_string(p);
    EXPECT_EQ(p.window.right, -1) << to_string(p);
    EXPECT_EQ(p.key_len, 9) << to_string(p);
  });
}

TEST(Generators, ShrinkingEndsAtASmallSeedOfLengths) {
  expect_shrunk([](const Case& c) { return c.problem.length_seed != 0 && c.problem.batch > 1; },
                [](const Problem& p) {
                  EXPECT_EQ(p.length_seed, 1U) << to_string(p);
                  EXPECT_EQ(p.query_heads * p.head_dim * p.query_len, 1) << to_string(p);
                });
}

TEST(Generators, ShrinkingEndsAtTheSmallestCaseThatStillFails) {
  const auto fails = [](const Case& c) {
    return c.problem.key_len >= 7 && c.problem.mask != Mask::none;
  };
  int shrunk = 0;
  for (const Case& c : draws(60)) {
    if (!fails(c)) continue;
    ++shrunk;
    const Problem p = shrink(k3(), c, fails, 1000).problem;
    EXPECT_EQ(p.key_len, 7);
    EXPECT_EQ(p.batch * p.query_heads * p.query_len * p.head_dim, 1) << to_string(p);
  }
  EXPECT_GT(shrunk, 10);
}

TEST(Generators, AShrunkCaseHasNoSimplerOneThatFailsNorWasAnyTriedTwice) {
  std::set<std::string> tried;
  const auto fails = [&](const Case& c) {
    EXPECT_TRUE(tried.insert(to_json(c)).second) << to_json(c);
    return c.problem.key_len >= 7;
  };
  for (const Case& c : draws(20)) {
    if (c.problem.key_len < 7) continue;
    tried.clear();
    const Case smallest = shrink(k3(), c, fails, 2000);
    EXPECT_EQ(smallest.schedule_seed, 0U) << "which reports do not print";
    for (const Case& simpler : simpler_cases(k3(), smallest)) {
      EXPECT_LT(simpler.problem.key_len, 7) << to_string(simpler);
    }
  }
}

TEST(Generators, ShrinkingStopsAfterItsBudget) {
  int calls = 0;
  const auto fails = [&](const Case&) { return ++calls, true; };
  (void)shrink(k3(), draws(1).front(), fails, 5);
  EXPECT_EQ(calls, 5);
}

TEST(Generators, AFamilyGlobThatMatchesNothingIsRefused) {
  GeneratorOptions options;
  options.families = "nothing*";
  EXPECT_THROW((void)draw_case(k3(), options, 1, 0), InvalidInput);
}

TEST(Generators, AKernelThatNeedsAlignedStridesGetsDrawnAndShrunkCasesThatHaveThem) {
  KernelInfo kernel = k3();
  kernel.layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16};
  int strided = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto c = draw_case(kernel, {}, 5, i);
    ASSERT_TRUE(c);
    EXPECT_FALSE(why_layouts_do_not_fit(kernel.layout_needs, c->problem, c->layouts));
    strided += c->layouts[forward::k].row_gap > 0 ? 1 : 0;
    for (const Case& simpler : simpler_cases(kernel, *c)) {
      EXPECT_FALSE(why_layouts_do_not_fit(kernel.layout_needs, simpler.problem, simpler.layouts));
    }
  }
  EXPECT_GT(strided, 20) << "not only contiguous tensors are left";
}

TEST(Generators, AKernelThatTakesMultiplesGetsDrawnAndShrunkLengthsThatAreSome) {
  KernelInfo kernel = *find_kernel("o5_deferred", Executor::cpu);
  kernel.query_len_multiple = 16;
  kernel.key_len_multiple = 24;
  std::set<std::int64_t> key_lens;
  bool has_lengths = false;
  const auto expect_multiples = [&](const Problem& p) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      EXPECT_EQ(p.query_len_of(b) % 16, 0) << to_string(p);
      EXPECT_EQ(p.key_len_of(b) % 24, 0) << to_string(p);
    }
  };
  for (std::uint64_t i = 0; i < 160; ++i) {
    const auto c = draw_case(kernel, {}, 5, i);
    ASSERT_TRUE(c) << i;
    expect_multiples(c->problem);
    key_lens.insert(c->problem.key_len);
    has_lengths = has_lengths || c->problem.length_seed != 0;
    for (const Case& simpler : simpler_cases(kernel, *c)) expect_multiples(simpler.problem);
  }
  EXPECT_GT(key_lens.size(), 4U);
  EXPECT_TRUE(key_lens.contains(0) && has_lengths);
  // A failure from 40 keys on ends at the first length that fails and fits.
  Case large = *draw_case(kernel, {}, 5, 0);
  large.problem.query_len = 160;
  large.problem.key_len = 240;
  large.problem.length_seed = 0;
  const Case smallest = shrink(
      kernel, large, [](const Case& c) { return c.problem.key_len >= 40; }, 1000);
  EXPECT_EQ(smallest.problem.key_len, 48);
  EXPECT_EQ(smallest.problem.query_len, 16);
}

}  // namespace
}  // namespace attest
