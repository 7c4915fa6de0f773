#pragma once

#include <functional>
#include <memory>

#include "verify/case_runner.hpp"
#include "verify/worker_process.hpp"

namespace attest {

/// How kernels are kept away from the campaign.
struct Isolation {
  WorkerSetup setup{};
  WorkerLimits limits{};  ///< of one case
  std::function<bool()> is_interrupted{};
};

/// The campaign was asked to end while a case ran.
struct Interrupted {};

/// Judges in a worker process that is used again and again, and replaced when a kernel kills it,
/// hangs or grows too large: verdicts `crashed` and `timed_out`. A crash in a worker that had
/// judged other cases before is repeated in a fresh one, and the verdict says so if it then does
/// not happen: the earlier case of another kernel may be the cause. A judge that does not finish in
/// time (phase other than `launch`) is nobody's failure: the case is vacuous.
class IsolatedRunner : public CaseRunner {
 public:
  explicit IsolatedRunner(Isolation isolation) : isolation_(std::move(isolation)) {}
  /// Throws Interrupted besides what CaseRunner says.
  [[nodiscard]] CaseAnswer run(const KernelInfo& kernel, const CaseTask& task) override;
  void hurry(double seconds) override { hurried_seconds_ = seconds; }

 private:
  [[nodiscard]] CaseAnswer attempt(const CaseTask& task);
  [[nodiscard]] CaseAnswer answer_without_reply(const CaseTask& task, const WorkerReply& reply);

  Isolation isolation_;
  double hurried_seconds_ = 0;
  std::unique_ptr<WorkerProcess> worker_;  ///< null: the next case gets a fresh one
};

}  // namespace attest
