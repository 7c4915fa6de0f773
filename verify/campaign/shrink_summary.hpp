#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "verify/cases/generators.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

/// Where shrinking ends for one planted bug: medians over several campaigns' seeds.
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

/// Draws cases of each seed until the law `mutant.killed_by` breaks, and shrinks that one. Takes no
/// more than seeds * (max_cases + max_calls) runs.
[[nodiscard]] ShrinkSummary summarise_shrinking(const KernelInfo& mutant,
                                                std::span<const std::uint64_t> seeds,
                                                const ShrinkSummaryOptions& options,
                                                CaseRunner& runner);

/// A Markdown table, a line a mutant.
[[nodiscard]] std::string to_markdown(const std::vector<ShrinkSummary>& summaries);

}  // namespace attest
