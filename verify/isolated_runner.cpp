#include "verify/isolated_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "core/error.hpp"

namespace attest {
namespace {

bool has_no_answer(const CaseAnswer& answer) {
  return answer.verdict.verdict == Verdict::crashed || answer.verdict.verdict == Verdict::timed_out;
}

std::string_view words_for(Phase phase) {
  switch (phase) {
    case Phase::launch:
      return "while the kernel ran";
    case Phase::reference:
      return "while the exact answer was computed";
    case Phase::certify:
      return "while the oracle recomputed a row";
    default:
      return "while the case was prepared or judged";
  }
}

}  // namespace

CaseAnswer IsolatedRunner::run(const KernelInfo& /*kernel*/, const CaseTask& task) {
  const bool was_fresh = !worker_;
  CaseAnswer answer = attempt(task);
  if (!has_no_answer(answer) || was_fresh || hurried_seconds_ > 0) return answer;
  worker_.reset();
  CaseAnswer again = attempt(task);
  if (has_no_answer(again)) return again;
  answer.verdict.failure->check.detail += fmt::format(
      "; not repeated in a fresh process, where the case {}: a case before it in the same process "
      "may be the cause",
      name_of(again.verdict.verdict));
  return answer;
}

CaseAnswer IsolatedRunner::attempt(const CaseTask& task) {
  if (!worker_) worker_ = std::make_unique<WorkerProcess>(isolation_.setup);
  WorkerLimits limits = isolation_.limits;
  if (hurried_seconds_ > 0) limits.seconds = std::min(limits.seconds, hurried_seconds_);
  WorkerReply reply = worker_->ask(encode(task), limits, isolation_.is_interrupted);
  if (reply.kind == WorkerReply::Kind::answered) {
    rethrow_error(reply.text);
    try {
      CaseAnswer answer = answer_from_line(reply.text);
      if (has_no_answer(answer)) {  // the launch failed, and the worker has ended
        worker_.reset();
      }
      return answer;
    } catch (const std::exception& error) {
      reply = {.kind = WorkerReply::Kind::died,
               .text = fmt::format("wrote something else than an answer to its parent ({})",
                                   error.what())};
    }
  }
  if (reply.kind == WorkerReply::Kind::interrupted) {
    worker_.reset();
    throw Interrupted{};
  }
  CaseAnswer answer = answer_without_reply(task, reply);
  worker_.reset();
  return answer;
}

CaseAnswer IsolatedRunner::answer_without_reply(const CaseTask& task, const WorkerReply& reply) {
  const bool is_late = reply.kind == WorkerReply::Kind::timed_out;
  const Phase phase = worker_->phase();
  CaseAnswer answer;
  CaseVerdict& verdict = answer.verdict;
  const std::string what = fmt::format("the process {}, {}", reply.text, words_for(phase));
  if (is_late && phase != Phase::launch) {
    verdict.verdict = Verdict::vacuous;
    verdict.reason = what;
    return answer;
  }
  const std::string law = worker_->law();
  verdict.verdict = is_late ? Verdict::timed_out : Verdict::crashed;
  verdict.failure = Failure{.law = law.empty() ? "*" : law,
                            .the_case = task.the_case,
                            .check = Check::failed(what),
                            .kind = verdict.verdict};
  return answer;
}

}  // namespace attest
