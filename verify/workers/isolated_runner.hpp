#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "verify/workers/case_runner.hpp"
#include "verify/workers/worker_process.hpp"

namespace attest {

/// Settings that keep kernels away from the campaign.
struct Isolation {
  WorkerSetup setup{};
  /// A worker that has loaded it; empty: a new one. Called by several threads.
  std::function<std::unique_ptr<WorkerProcess>(const WorkerSetup&)> make_worker{};
  WorkerLimits limits{};  ///< of one case
  std::function<bool()> is_interrupted{};
};

/// The campaign was asked to end while a case ran.
struct Interrupted {};

/// Tries of a case in one fresh process before its failure counts as not repeated: the first call
/// of a process, and calls that find what another call of the same case left.
inline constexpr int tries_in_a_fresh_process = 3;

/// Judges in a worker process that is used for some tens of cases, and replaced earlier when a
/// kernel kills it, hangs or grows too large: verdicts `crashed` and `timed_out`. A case that
/// failed is judged again in a fresh process, up to three times; what then happens at the first try
/// is the verdict, and otherwise the failure says how it is repeated (Failure::repetition). A judge
/// that does not finish in time (phases other than `launch` and `ask`) is nobody's failure: the
/// case is vacuous.
class IsolatedRunner : public CaseRunner {
 public:
  explicit IsolatedRunner(Isolation isolation) : isolation_(std::move(isolation)) {}
  /// Throws Interrupted besides what CaseRunner says.
  [[nodiscard]] CaseAnswer run(const KernelInfo& kernel, const CaseTask& task) override;
  void hurry(double seconds) override { hurried_seconds_ = seconds; }

 private:
  [[nodiscard]] CaseAnswer attempt(const CaseTask& task);
  [[nodiscard]] CaseAnswer confirmed(const CaseTask& task, CaseAnswer answer);
  [[nodiscard]] CaseAnswer answer_without_reply(const CaseTask& task, const WorkerReply& reply);

  Isolation isolation_;
  double hurried_seconds_ = 0;
  std::unique_ptr<WorkerProcess> worker_;  ///< null: the next case gets a fresh one
  std::vector<std::string> judged_;        ///< keys of the cases that it was given
};

/// Makes a runner of its own for each thread.
[[nodiscard]] inline std::function<std::unique_ptr<CaseRunner>()> isolated_runners(
    Isolation isolation) {
  return [isolation = std::move(isolation)] { return std::make_unique<IsolatedRunner>(isolation); };
}

}  // namespace attest
