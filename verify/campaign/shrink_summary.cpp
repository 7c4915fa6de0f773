#include "verify/campaign/shrink_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

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

}  // namespace

bool ShrinkSummary::is_small() const {
  return killed > 0 && batch <= 1 && query_heads <= 1 && query_tiles <= 2 && key_tiles <= 2;
}

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

}  // namespace attest
