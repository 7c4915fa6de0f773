#include "verify/campaign/shrink_failure.hpp"

#include <fmt/format.h>

#include <chrono>
#include <limits>

#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

bool is_same(const std::optional<Failure>& failure, const Failure& wanted) {
  if (!failure || failure->kind != wanted.kind) return false;
  return wanted.kind != Verdict::failed || failure->law == wanted.law;
}

}  // namespace

CaseTask task_of(const KernelInfo& kernel, const Failure& failure) {
  // An error may have been returned for a variation that any law made.
  return {.executor = kernel.executor,
          .the_case = failure.the_case,
          .laws = {.glob = failure.law == error_law ? "*" : failure.law, .every_law = true}};
}

void ask_misreadings(CaseRunner& runner, const KernelInfo& kernel, Failure& failure) {
  if (failure.kind != Verdict::failed || !failure.the_case.layouts.paging.is_used()) return;
  CaseTask task = task_of(kernel, failure);
  task.laws.asks_misreadings = true;
  const CaseVerdict again = runner.run(kernel, task).verdict;
  if (is_same(again.failure, failure)) failure.misreadings = again.failure->misreadings;
}

Failure shrink_failure(CaseRunner& runner, const KernelInfo& kernel, const Failure& failure,
                       const ShrinkBudget& budget, const std::function<void(int)>& on_try) {
  const bool gives_no_answer = failure.kind != Verdict::failed;
  const auto start = std::chrono::steady_clock::now();
  const double limit = gives_no_answer ? budget.seconds_without_answer : budget.seconds;
  Failure smallest = failure;
  int tried = 0;
  bool is_cut_short = false;
  const auto fails = [&](const Case& c) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    is_cut_short = spent.count() > limit;
    if (is_cut_short) return false;
    if (on_try) on_try(tried);
    ++tried;
    CaseTask task = task_of(kernel, failure);
    task.the_case = c;
    const CaseVerdict verdict = runner.run(kernel, task).verdict;
    if (!is_same(verdict.failure, failure)) return false;
    smallest = *verdict.failure;
    return true;
  };
  runner.hurry(gives_no_answer ? budget.candidate_seconds
                               : std::numeric_limits<double>::infinity());
  (void)shrink(kernel, failure.the_case, fails, budget.calls);
  runner.hurry(0);
  Failure result = failure;
  if (!(smallest.the_case == failure.the_case)) {
    const CaseVerdict again = runner.run(kernel, task_of(kernel, smallest)).verdict;
    const bool is_confirmed = is_same(again.failure, failure) && again.failure->repetition.empty();
    if (is_confirmed) result = *again.failure;
  }
  if (is_cut_short || tried >= budget.calls) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    result.shrinking =
        fmt::format("ended after {:.0f} s and {} cases; attest verify --minimize goes on",
                    spent.count(), tried);
  }
  ask_misreadings(runner, kernel, result);
  return result;
}

}  // namespace attest
