#include "verify/workers/case_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {

CaseAnswer InProcessRunner::run(const KernelInfo& kernel, const CaseTask& task) {
  PhaseClock clock(note_);
  clock.set_law("");
  (void)take_library_note();  // of the case before
  std::unique_ptr<Device>& device = devices_[task.executor];
  if (!device) device = make_device(task.executor);
  Run run(kernel, task.the_case, *device, &clock);
  if (task.judges != Judges::laws) {
    return {.judgement = judge_by_rules(run, task.judges, task.laws.glob),
            .seconds = clock.times()};
  }
  CaseAnswer answer{.verdict = verify_case(run, task.laws)};
  answer.library = take_library_note();
  if (task.certify && answer.verdict.verdict != Verdict::unsupported) {
    try {
      (void)run.answer();
    } catch (const KernelError& error) {  // it cannot say how it rounds
      if (!answer.verdict.failure) refuse(answer.verdict, error, task.the_case);
      answer.seconds = clock.times();
      return answer;
    }
    const InPhase phase(clock, Phase::certify);
    answer.certificate = reference_of(*run.problem().operation)
                             .certify(run.problem(), run.inputs(), run.answer(), *task.certify, 1);
    if (!answer.certificate.holds()) {
      throw std::logic_error(fmt::format(
          "the f64 reference differs from the oracle by {:.3g} times its own error estimate, in {}",
          answer.certificate.worst_ratio, to_string(task.the_case)));
    }
  }
  answer.seconds = clock.times();
  return answer;
}

}  // namespace attest
