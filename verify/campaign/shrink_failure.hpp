#pragma once

#include <functional>

#include "core/run/kernel.hpp"
#include "verify/judge/verdict.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

struct ShrinkBudget {
  int calls = 400;  ///< cases tried
  /// Wall time. A case of usual size takes a second; what ends here was of 2^16 entries, say, and
  /// Failure::shrinking tells how far it got.
  double seconds = 60;
  /// Wall time of shrinking a crash or a time-out, where each case tried costs a process.
  double seconds_without_answer = 30;
  /// Time limit of a candidate, past which it counts as hanging. A correct run of a case that a
  /// campaign draws takes milliseconds.
  double candidate_seconds = 2;
};

/// Finds the same failure (law, or way to give no answer) of a simpler case. It is confirmed in the
/// end, in a fresh process where there are worker processes and with the full time limit; if the
/// smaller case does not do it again, the original stays. `on_try` is told how many cases were
/// tried before each.
[[nodiscard]] Failure shrink_failure(CaseRunner& runner, const KernelInfo& kernel,
                                     const Failure& failure, const ShrinkBudget& budget,
                                     const std::function<void(int)>& on_try = {});

/// Fills in Failure::misreadings, by a run of its own: it launches the kernel on another case, and
/// what becomes of that is no part of the failure.
void ask_misreadings(CaseRunner& runner, const KernelInfo& kernel, Failure& failure);

/// The task that repeats a failure.
[[nodiscard]] CaseTask task_of(const KernelInfo& kernel, const Failure& failure);

}  // namespace attest
