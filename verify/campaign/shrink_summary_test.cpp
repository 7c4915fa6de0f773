#include "verify/campaign/shrink_summary.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "core/run/registry.hpp"

namespace attest {
namespace {

// One bug of each kind: tails, sentinels, races, bounds, masks, rescaling. `attest mutants` shows
// the table of all.
TEST(ShrinkSummary, TheMedianShrunkCaseOfAPlantedBugIsOneHeadOfAtMostTwoTiles) {
  constexpr std::array<std::uint64_t, 3> seeds{1, 2, 3};
  InProcessRunner runner;
  std::vector<ShrinkSummary> summaries;
  for (const std::string_view name :
       {"c05_tail_lanes_in_denominator", "c06_finite_sentinel", "c13_tile_maximum_not_reset",
        "c15_missing_barrier", "c17_key_row_out_of_bounds", "c37_causal_off_by_one",
        "c39_output_not_rescaled"}) {
    const KernelInfo* mutant = find_kernel(fmt::format("mutant/{}", name), Executor::simt);
    ASSERT_NE(mutant, nullptr) << name;
    // One case in fifty shows the rarest of them: of 150 cases of 21 campaigns one or two miss it.
    summaries.push_back(summarise_shrinking(*mutant, seeds, {.max_cases = 500}, runner));
    EXPECT_EQ(summaries.back().killed, 3) << name;
    EXPECT_TRUE(summaries.back().is_small()) << name;
  }
  const std::string table = to_markdown(summaries);
  SCOPED_TRACE(table);
  double integers = 0;
  for (const ShrinkSummary& summary : summaries) integers += summary.integer_share;
  EXPECT_GE(integers, static_cast<double>(summaries.size()) * 2 / 3);
}

TEST(ShrinkSummary, AKernelThatNothingKillsHasNoMedians) {
  KernelInfo kernel = *find_kernel("o5_deferred", Executor::cpu);
  kernel.killed_by = "within_bound";
  InProcessRunner runner;
  constexpr std::array<std::uint64_t, 1> seeds{1};
  const ShrinkSummary summary = summarise_shrinking(kernel, seeds, {.max_cases = 5}, runner);
  EXPECT_EQ(summary.killed, 0);
  EXPECT_FALSE(summary.is_small());
}

}  // namespace
}  // namespace attest
