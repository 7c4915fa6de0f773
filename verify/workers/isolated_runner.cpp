#include "verify/workers/isolated_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "core/base/counted.hpp"
#include "core/base/error.hpp"

namespace attest {
namespace {

bool has_no_answer(const CaseAnswer& answer) {
  return answer.verdict.verdict == Verdict::crashed || answer.verdict.verdict == Verdict::timed_out;
}

/// A worker makes one first call, and only its first cases find a process that nothing has used: a
/// kernel that sets up something wrongly then, or too late, fails in no other. Starting one costs
/// about as much as a few cases; on a GPU, where each has to make a context, as much as a hundred.
std::size_t cases_of_a_worker(Executor executor) {
  return executor == Executor::gpu ? 1000 : 50;
}

/// So many of the cases before a failure are named.
constexpr std::size_t named_cases = 3;

std::string words_for(Phase phase, Question question) {
  switch (phase) {
    case Phase::launch:
      return "while the kernel ran";
    case Phase::ask:
      return fmt::format("while the kernel was asked {}",
                         question_texts[static_cast<std::size_t>(question)]);
    case Phase::reference:
      return "while the exact answer was computed";
    case Phase::certify:
      return "while the oracle recomputed a row";
    default:
      return "while the case was prepared or judged";
  }
}

/// Of the cases that a process judged, the last of which failed.
std::string words_for_calls_before(const std::vector<std::string>& judged) {
  const std::size_t before = judged.size() - 1;
  if (before == 0) return "it was the first case of its process";
  const std::size_t from = before - std::min(before, named_cases);
  return fmt::format(
      "{} ran before it in its process, the last {}", counted(before, "case"),
      fmt::join(judged.begin() + static_cast<std::ptrdiff_t>(from), judged.end() - 1, ", "));
}

}  // namespace

CaseAnswer IsolatedRunner::run(const KernelInfo& /*kernel*/, const CaseTask& task) {
  if (judged_.size() >= cases_of_a_worker(task.executor)) worker_.reset();
  CaseAnswer answer = attempt(task);
  if (!answer.verdict.failure || hurried_seconds_ > 0) return answer;
  // A kernel that kills fresh processes needs no second one.
  if (has_no_answer(answer) && judged_.size() == 1) return answer;
  return confirmed(task, std::move(answer));
}

CaseAnswer IsolatedRunner::confirmed(const CaseTask& task, CaseAnswer answer) {
  const std::string calls_before = words_for_calls_before(judged_);
  worker_.reset();
  Verdict verdict = Verdict::passed;
  for (int tries = 1; tries <= tries_in_a_fresh_process; ++tries) {
    CaseAnswer again = attempt(task);
    if (again.verdict.failure) {
      if (tries > 1) {
        again.verdict.failure->repetition =
            fmt::format("try {} of {} in a fresh process failed, those before it {}", tries,
                        tries_in_a_fresh_process, name_of(verdict));
      }
      return again;
    }
    verdict = again.verdict.verdict;
  }
  answer.verdict.failure->repetition =
      fmt::format("not repeated in a fresh process, where the case {} {} times; {}",
                  name_of(verdict), tries_in_a_fresh_process, calls_before);
  return answer;
}

CaseAnswer IsolatedRunner::attempt(const CaseTask& task) {
  if (!worker_) {
    worker_ = isolation_.make_worker ? isolation_.make_worker(isolation_.setup)
                                     : std::make_unique<WorkerProcess>(isolation_.setup);
    judged_.clear();
  }
  judged_.push_back(file_key(task.the_case));
  WorkerLimits limits = isolation_.limits;
  if (hurried_seconds_ > 0) limits.seconds = std::min(limits.seconds, hurried_seconds_);
  WorkerReply reply = worker_->ask(encode(task), limits, isolation_.is_interrupted);
  std::optional<WorkerError> error;
  if (reply.kind == WorkerReply::Kind::answered) {
    try {
      error = error_from_line(reply.text);
      if (!error) {
        CaseAnswer answer = answer_from_line(reply.text);
        if (answer.verdict.failure) answer.verdict.failure->check.detail += reply.last_words;
        if (has_no_answer(answer)) worker_.reset();  // the launch failed, and the worker has ended
        return answer;
      }
    } catch (const std::exception& bad) {
      reply = {.kind = WorkerReply::Kind::died,
               .text = fmt::format("wrote something else than an answer to its parent ({})",
                                   bad.what())};
    }
  }
  if (error) rethrow(*error);
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
  std::string what =
      fmt::format("the process {}, {}", reply.text, words_for(phase, worker_->question()));
  if (const std::string fault = worker_->fault(); !fault.empty()) what += "; it " + fault;
  if (is_late && phase != Phase::launch && phase != Phase::ask) {
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
