#include "verify/shrink_failure.hpp"

#include <chrono>

#include "verify/shrinking.hpp"

namespace attest {
CaseTask task_of(const KernelInfo& kernel, const Failure& failure) {
  return {.executor = kernel.executor,
          .the_case = failure.the_case,
          .laws = {.glob = failure.law, .every_law = true}};
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
    if (!verdict.failure || verdict.failure->kind != failure.kind) return false;
    smallest = *verdict.failure;
    return true;
  };
  if (gives_no_answer) runner.hurry(budget.candidate_seconds);
  (void)shrink(kernel, failure.the_case, fails, budget.calls);
  if (!gives_no_answer) return smallest;
  runner.hurry(0);
  if (smallest.the_case == failure.the_case) return failure;
  const CaseVerdict again = runner.run(kernel, task_of(kernel, smallest)).verdict;
  const bool is_confirmed = again.failure && again.failure->kind == failure.kind;
  return is_confirmed ? *again.failure : failure;
}

}  // namespace attest
