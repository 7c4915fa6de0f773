#include "verify/cases/plain.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/attention/problem_field_test.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/claimed.hpp"
#include "verify/cases/generators.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

const KernelInfo& with_every_feature() {
  return *find_kernel("m6_every_shape", Executor::cpu);
}

/// A case of the kernel for the problem.
Case case_for(const Problem& problem) {
  Case c = *draw_case(with_every_feature(), {}, 1, 0);
  c.problem = problem;
  c.inputs = {};
  c.layouts = {};
  c.plan = with_every_feature().plans(problem).front();
  return c;
}

/// True if attention, which the kernel computes, has a feature for the field.
bool has_feature(const ProblemField& field) {
  return field.feature && (field.belongs_to == nullptr || field.belongs_to(usual_problem()));
}

bool leads_to(const Case& c, const Problem& problem) {
  return std::ranges::any_of(simpler_cases(with_every_feature(), c),
                             [&](const Case& simpler) { return simpler.problem == problem; });
}

TEST(PlainProblem, HasNoFeatureAndNoWindow) {
  Problem problem = problem_from_string("h2 n5 window_top_left left1");
  for (const ProblemField& field : problem_fields()) {
    if (!has_feature(field)) continue;
    EXPECT_TRUE(with_every_feature().features.*field.feature->flag) << field.name;
    set_value(field, problem, value_of(field, problem_using(field)));
    EXPECT_TRUE(facts_of({.problem = problem}).contains(std::string(field.feature->name)));
  }
  EXPECT_EQ(plain_problem(with_every_feature(), problem), problem_from_string("h2 q1 k5"));
}

TEST(PlainProblem, OfAKernelThatHasOnlyWindowsKeepsItsWindow) {
  KernelInfo kernel = with_every_feature();
  kernel.masks = {Mask::window_top_left};
  const Problem problem = problem_from_string("n5 window_top_left left1 softcap3");
  EXPECT_EQ(plain_problem(kernel, problem), problem_from_string("n5 window_top_left left1"));
}

TEST(Shrinking, TakesAwayAllFeaturesAtOnceAndEachAlone) {
  Problem all = usual_problem();
  for (const ProblemField& field : problem_fields()) {
    if (has_feature(field)) set_value(field, all, value_of(field, problem_using(field)));
  }
  for (const ProblemField& field : problem_fields()) {
    if (!has_feature(field)) continue;
    Problem without = all;
    take_feature_away(field, without);
    EXPECT_TRUE(leads_to(case_for(all), without)) << field.name;
  }
  EXPECT_TRUE(leads_to(case_for(all), plain_problem(with_every_feature(), all)));
}

TEST(Shrinking, TriesSmallSeedsOfEachKind) {
  for (const ProblemField& field : problem_fields()) {
    if (field.kind() != FieldKind::seed) continue;
    Problem problem = usual_problem();
    set_value(field, problem, std::uint64_t{3});
    const Case c = case_for(problem);
    for (const std::uint64_t seed : {0U, 1U, 2U, 4U}) {
      set_value(field, problem, seed);
      EXPECT_EQ(leads_to(c, problem), seed < 3) << field.name << " " << seed;
    }
  }
}

}  // namespace
}  // namespace attest
