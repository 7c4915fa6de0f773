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

/// Pairs of the launch's first rows, so many, and the keys that they see.
std::int64_t pairs_of(const RingLaunch& launch, std::int64_t rows) {
  if (!launch.is_causal) return rows * launch.keys;
  return rows * (launch.keys - launch.queries) + rows * (rows + 1) / 2;
}

/// The first rows of a launch that form about so many pairs. Both parts are whole tiles of 64 rows
/// where they are not smaller.
std::int64_t rows_with_pairs(const RingLaunch& launch, std::int64_t pairs) {
  constexpr std::int64_t tile = 64;
  std::int64_t rows = 0;
  while (rows < launch.queries && pairs_of(launch, rows) < pairs) ++rows;
  if (rows < tile || launch.queries - rows < tile) return rows;
  return std::min((rows + tile / 2) / tile * tile, launch.queries);
}

/// The first rows of a launch, or those from there on.
RingLaunch first_rows(RingLaunch launch, std::int64_t rows) {
  if (launch.is_causal) launch.keys -= launch.queries - rows;
  launch.queries = rows;
  launch.is_causal &= rows > 1;
  return launch;
}
RingLaunch rows_from(RingLaunch launch, std::int64_t row) {
  launch.first_query += row;
  launch.queries -= row;
  launch.is_causal &= launch.queries > 1;
  return launch;
}

std::int64_t most_keys(const std::vector<RingLaunch>& launches) {
  std::int64_t keys = 0;
  for (const RingLaunch& launch : launches) keys = std::max(keys, launch.keys);
  return keys;
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
    step.keys = most_keys(step.launches);
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<RingStep> ring_steps_with_own_last(const Problem& problem, const Plan& plan,
                                               std::int64_t rank) {
  constexpr std::int64_t least_rows = 32;
  std::vector<RingStep> steps = ring_steps(problem, plan, rank);
  std::int64_t rows = 0;
  for (const RingLaunch& launch : steps.front().launches) rows += launch.queries;
  if (steps.size() == 1 || rows < least_rows) return steps;
  RingStep first{.owner = rank}, last{.owner = rank};
  std::int64_t pairs = 0;
  for (const RingLaunch& launch : steps.front().launches) pairs += pairs_of(launch, launch.queries);
  std::int64_t left = pairs / 2;
  for (const RingLaunch& launch : steps.front().launches) {
    const std::int64_t now = left > 0 ? rows_with_pairs(launch, left) : 0;
    if (now > 0) first.launches.push_back(first_rows(launch, now));
    if (now < launch.queries) last.launches.push_back(rows_from(launch, now));
    left -= pairs_of(launch, now);
  }
  if (first.launches.empty() || last.launches.empty()) return steps;
  first.keys = most_keys(first.launches);
  last.keys = most_keys(last.launches);
  steps.front() = std::move(first);
  steps.push_back(std::move(last));
  return steps;
}

}  // namespace attest
