#include <algorithm>
#include <string>

#include "verify/campaign/kernel_result.hpp"

namespace attest {
namespace {

void add_counts(std::map<std::string, std::int64_t>& to,
                const std::map<std::string, std::int64_t>& more) {
  for (const auto& [name, count] : more) to[name] += count;
}

void absorb_known(std::map<std::string, KnownFailures>& to,
                  const std::map<std::string, KnownFailures>& more) {
  for (const auto& [id, other] : more) {
    const auto [at, is_new] = to.emplace(id, other);
    if (is_new) continue;
    KnownFailures& same = at->second;
    const std::int64_t cases = same.cases + other.cases;
    if (other.failing_case < same.failing_case) same = other;
    same.cases = cases;
  }
}

}  // namespace

void DoneTasks::insert(const DoneTasks& others) {
  below = std::max(below, others.below);
  beyond.insert(others.beyond.begin(), others.beyond.end());
  while (!beyond.empty() && *beyond.begin() <= below) {
    if (*beyond.begin() == below) ++below;
    beyond.erase(beyond.begin());
  }
}

void KernelResult::absorb(const KernelResult& other) {
  cases += other.cases;
  regressions += other.regressions;
  decided += other.decided;
  if (vacuous == 0) vacuous_reason = other.vacuous_reason;
  vacuous += other.vacuous;
  unchecked += other.unchecked;
  crashed += other.crashed;
  timed_out += other.timed_out;
  drawn += other.drawn;
  refusals.add(other.refusals);
  declined.add(other.declined);
  given_up += other.given_up;
  add_counts(checks, other.checks);
  add_counts(families, other.families);
  add_counts(coverage, other.coverage);
  worst_over_bound.raise(other.worst_over_bound);
  certified_rows += other.certified_rows;
  worst_certificate = std::max(worst_certificate, other.worst_certificate);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += other.seconds[i];
  if (other.failure && (!failure || other.failing_case < failing_case)) {
    failure = other.failure;
    failing_case = other.failing_case;
    is_shrunk = other.is_shrunk;
  }
  absorb_known(known, other.known);
  not_reproduced.insert(other.not_reproduced.begin(), other.not_reproduced.end());
  done.insert(other.done);
  facts.insert(other.facts.begin(), other.facts.end());
  if (other.example && (!example || other.example_index < example_index)) {
    example = other.example;
    example_index = other.example_index;
  }
}

}  // namespace attest
