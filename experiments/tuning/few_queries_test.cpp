#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "core/run/registry.hpp"
#include "core/run/tuning_table.hpp"

namespace attest {
namespace {

bool is_within_a_factor_of_two(std::int64_t a, std::int64_t b) {
  return a <= 2 * b && b <= 2 * a;
}

bool is_near(Plan rule, Plan winner) {
  const auto splits = [](const Plan& plan) { return std::max<std::int64_t>(1, plan.key_splits); };
  const auto packs = [](const Plan& plan) { return plan.pack_gqa == PackGqa::yes; };
  return packs(rule) == packs(winner) && is_within_a_factor_of_two(splits(rule), splits(winner));
}

/// A kernel's own first Plan of one query is what runs where nothing was tuned.
class FirstPlanOfOneQuery : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Kernel, FirstPlanOfOneQuery, testing::Values("fa2_mma", "fa3_wgmma"),
                         [](const auto& kernel) { return std::string(kernel.param); });

TEST_P(FirstPlanOfOneQuery, PacksAndSplitsAsTheFastestTwoOfARaceDoWithinAFactorOfTwo) {
  const KernelInfo& kernel = *find_kernel(GetParam(), Executor::simt);
  int rows = 0;
  for (const TunedPlan& row : embedded_tuning_table().rows) {
    const Problem problem = problem_from_string(row.problem);
    if (row.key.kernel != kernel.name || problem.query_len != 1) continue;
    ++rows;
    const Plan rule = kernel.plans(problem).front();
    EXPECT_TRUE(is_near(rule, plan_from_string(row.plan)) ||
                is_near(rule, plan_from_string(row.runner_up)))
        << row.problem << ": " << to_string(rule) << ", of a race " << row.plan << " and "
        << row.runner_up;
  }
  EXPECT_GE(rows, 12);
}

TEST_P(FirstPlanOfOneQuery, FillsAnH200WithOneSequence) {
  const KernelInfo& kernel = *find_kernel(GetParam(), Executor::simt);
  const Problem problem = problem_from_string("b1 h32/8 q1 k65536 d128 none bf16");
  constexpr std::int64_t kv_heads = 8, multiprocessors = 132;
  EXPECT_GE(kernel.plans(problem).front().key_splits * kv_heads, multiprocessors * 9 / 10);
}

/// Chunks that the keys of an entry come in; 0: as the lengths of all entries decide.
std::int64_t chunks(const Plan& plan, const Problem& problem) {
  if (plan.split_keys > 0) return (problem.key_len + plan.split_keys - 1) / plan.split_keys;
  return plan.key_splits;
}

TEST(DecodeMma, CutsKeysOfFewRowTilesAsTheFastestTwoOfARaceDoWithinAFactorOfTwo) {
  const KernelInfo& kernel = *find_kernel("decode_mma", Executor::simt);
  int rows = 0;
  for (const TunedPlan& row : embedded_tuning_table().rows) {
    const Problem problem = problem_from_string(row.problem);
    constexpr std::int64_t multiprocessors = 132;
    // More tiles are work for all SMs however their keys are cut, and which cut wins is noise.
    if (row.key.kernel != kernel.name || problem.batch * problem.kv_heads > multiprocessors)
      continue;
    ++rows;
    const Plan rule = kernel.plans(problem).front();
    const auto is_near = [&](const std::string& text) {
      return is_within_a_factor_of_two(chunks(rule, problem),
                                       chunks(plan_from_string(text), problem));
    };
    EXPECT_TRUE(is_near(row.plan) || is_near(row.runner_up))
        << row.problem << ": " << to_string(rule) << ", of a race " << row.plan << " and "
        << row.runner_up;
  }
  EXPECT_GE(rows, 8);
}

}  // namespace
}  // namespace attest
