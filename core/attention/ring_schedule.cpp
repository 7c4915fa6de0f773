#include "core/attention/ring_schedule.hpp"

#include <algorithm>

#include "core/attention/distribution.hpp"

namespace attest {
namespace {

/// Adds a row, which sees `keys` > 0, to the launch of the row before it, or begins one. Rows see
/// as many keys as the row before them, or more.
void add_row(std::vector<RingLaunch>& launches, std::int64_t row, std::int64_t keys) {
  if (!launches.empty()) {
    RingLaunch& last = launches.back();
    const bool rises = keys == last.keys + 1, stays = keys == last.keys;
    const bool is_of_its_kind = last.is_causal ? rises : stays;
    const bool begins_a_kind = last.queries == 1 && (rises || stays);
    if (is_of_its_kind || begins_a_kind) {
      last.is_causal = rises;
      last.keys = keys;
      ++last.queries;
      return;
    }
  }
  launches.push_back({.first_query = row, .queries = 1, .keys = keys});
}

}  // namespace

std::vector<RingStep> ring_steps(const Problem& problem, const Plan& plan, std::int64_t rank) {
  const auto queries = tokens_of_rank(plan.distribution, problem.query_len, plan.ranks, rank);
  std::vector<RingStep> steps;
  for (std::int64_t s = 0; s < plan.ranks; ++s) {
    RingStep step{.owner = (rank - s + plan.ranks) % plan.ranks};
    const auto keys = tokens_of_rank(plan.distribution, problem.key_len, plan.ranks, step.owner);
    for (std::size_t row = 0; row < queries.size(); ++row) {
      const std::int64_t end =
          visible_key_count(problem.mask, problem.query_len, problem.key_len, queries[row]);
      const auto seen = std::ranges::lower_bound(keys, end) - keys.begin();
      if (seen > 0) add_row(step.launches, static_cast<std::int64_t>(row), seen);
    }
    for (const RingLaunch& launch : step.launches) step.keys = std::max(step.keys, launch.keys);
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace attest
