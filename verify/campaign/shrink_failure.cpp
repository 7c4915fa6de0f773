#include "verify/campaign/shrink_failure.hpp"

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

Failure shrink_failure(CaseRunner& runner, const KernelInfo& kernel, const Failure& failure,
                       const ShrinkBudget& budget) {
  const bool gives_no_answer = failure.kind != Verdict::failed;
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> limit(budget.seconds_without_answer);
  Failure smallest = failure;
  const auto fails = [&](const Case& c) {
    if (gives_no_answer && std::chrono::steady_clock::now() - start > limit) return false;
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
  if (smallest.the_case == failure.the_case) return failure;
  const CaseVerdict again = runner.run(kernel, task_of(kernel, smallest)).verdict;
  const bool is_confirmed = is_same(again.failure, failure) && again.failure->repetition.empty();
  return is_confirmed ? *again.failure : failure;
}

}  // namespace attest
