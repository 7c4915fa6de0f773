#pragma once

#include "core/run/kernel.hpp"
#include "verify/judge/verdict.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

struct ShrinkBudget {
  int calls = 400;  ///< cases tried
  /// Wall time for a crash or a time-out, where each case tried costs a process. Not for broken
  /// laws: what they shrink to does not depend on the speed of the machine.
  double seconds_without_answer = 30;
  /// What a candidate that hangs costs. A correct run of a case that a campaign draws takes
  /// milliseconds.
  double candidate_seconds = 2;
};

/// Finds the same failure (law, or way to give no answer) of a simpler case. It is confirmed in the
/// end, in a fresh process where there are worker processes and with the full time limit; if the
/// smaller case does not do it again, the original stays.
[[nodiscard]] Failure shrink_failure(CaseRunner& runner, const KernelInfo& kernel,
                                     const Failure& failure, const ShrinkBudget& budget);

/// The task that repeats a failure.
[[nodiscard]] CaseTask task_of(const KernelInfo& kernel, const Failure& failure);

}  // namespace attest
