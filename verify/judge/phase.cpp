#include "verify/judge/phase.hpp"

#include <functional>
#include <utility>

#include "core/run/floating_point_mode.hpp"

namespace attest {
namespace {

template <typename Answer, typename... Of>
void watch(std::function<Answer(Of...)>& ask, Question question, PhaseClock& clock) {
  if (!ask) return;
  ask = [ask = std::move(ask), question, &clock](Of... of) -> Answer {
    clock.set_question(question);
    const InPhase phase(clock, Phase::ask);
    const FloatingPointMode mode;
    return ask(of...);
  };
}

}  // namespace

KernelInfo watched_kernel(KernelInfo kernel, PhaseClock& clock) {
  watch(kernel.unsupported, Question::can_run, clock);
  watch(kernel.plans, Question::plans, clock);
  watch(kernel.precision, Question::precision, clock);
  watch(kernel.workspace_bytes, Question::workspace, clock);
  return kernel;
}

}  // namespace attest
