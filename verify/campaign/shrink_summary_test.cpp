#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/generators.hpp"
#include "verify/cases/shrinking.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {
namespace {

/// End of shrinking for one planted bug: medians over several campaigns' seeds.
struct ShrinkSummary {
  std::string kernel;
  std::int64_t seeds = 0;   ///< campaigns
  std::int64_t killed = 0;  ///< of them; the figures below are of these
  double batch = 0, query_heads = 0;
  double query_tiles = 0, key_tiles = 0;  ///< 1 where the plan has no such tile
  double integer_share = 0;               ///< of cases whose Q, K and V are whole numbers
  double calls = 0;                       ///< cases run to shrink one

  /// One batch entry, one head, at most two tiles of queries and of keys.
  [[nodiscard]] bool is_small() const;
};

struct ShrinkSummaryOptions {
  std::int64_t max_cases = 150;  ///< drawn before the mutant counts as a survivor of that seed
  int max_calls = 400;
  GeneratorOptions generator = {};
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double tiles(std::int64_t length, std::int64_t tile) {
  return tile == 0 ? 1.0 : static_cast<double>((length + tile - 1) / tile);
}

bool holds_integers(const Case& c) {
  const Inputs inputs = make_inputs(c.problem, c.inputs);
  return std::ranges::all_of(std::array{inputs[forward::q].values(), inputs[forward::k].values(),
                                        inputs[forward::v].values()},
                             [](auto values) {
                               return std::ranges::all_of(
                                   values, [](float x) { return std::nearbyint(x) == x; });
                             });
}

bool ShrinkSummary::is_small() const {
  return killed > 0 && batch <= 1 && query_heads <= 1 && query_tiles <= 2 && key_tiles <= 2;
}

/// Draws cases of each seed until the law `mutant.killed_by` breaks, and shrinks that one. Takes no
/// more than seeds * (max_cases + max_calls) runs.
ShrinkSummary summarise_shrinking(const KernelInfo& mutant, std::span<const std::uint64_t> seeds,
                                  const ShrinkSummaryOptions& options, CaseRunner& runner) {
  const LawSelection laws{.glob = mutant.killed_by, .every_law = true};
  const auto fails = [&](const Case& c) {
    const CaseTask task{.executor = mutant.executor, .the_case = c, .laws = laws};
    return runner.run(mutant, task).verdict.failure.has_value();
  };
  ShrinkSummary summary{.kernel = mutant.name, .seeds = std::ssize(seeds)};
  std::vector<double> batch, heads, query_tiles, key_tiles, calls;
  std::int64_t integers = 0;
  for (const std::uint64_t seed : seeds) {
    std::optional<Case> failing;
    for (std::int64_t i = 0; i < options.max_cases && !failing; ++i) {
      const auto c = draw_case(mutant, options.generator, seed, static_cast<std::uint64_t>(i));
      if (c && fails(*c)) failing = c;
    }
    if (!failing) continue;
    int count = 0;
    const Case smallest = shrink(
        mutant, *failing, [&](const Case& c) { return ++count, fails(c); }, options.max_calls);
    ++summary.killed;
    batch.push_back(static_cast<double>(smallest.problem.batch));
    heads.push_back(static_cast<double>(smallest.problem.query_heads));
    query_tiles.push_back(tiles(smallest.problem.query_len, smallest.plan.query_tile));
    key_tiles.push_back(tiles(smallest.problem.key_len, smallest.plan.key_tile));
    calls.push_back(count);
    integers += holds_integers(smallest) ? 1 : 0;
  }
  summary.batch = median(batch);
  summary.query_heads = median(heads);
  summary.query_tiles = median(query_tiles);
  summary.key_tiles = median(key_tiles);
  summary.calls = median(calls);
  if (summary.killed > 0) {
    summary.integer_share = static_cast<double>(integers) / static_cast<double>(summary.killed);
  }
  return summary;
}

/// A Markdown table, a line a mutant.
std::string to_markdown(const std::vector<ShrinkSummary>& summaries) {
  std::string text =
      "| mutant | killed | batch | heads | query tiles | key tiles | integers | calls |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const ShrinkSummary& s : summaries) {
    text += fmt::format("| `{}` | {} of {} | {} | {} | {} | {} | {:.0f} % | {} |\n", s.kernel,
                        s.killed, s.seeds, s.batch, s.query_heads, s.query_tiles, s.key_tiles,
                        100 * s.integer_share, s.calls);
  }
  return text;
}

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
