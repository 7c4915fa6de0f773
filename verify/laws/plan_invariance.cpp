#include <fmt/format.h>

#include "core/inputs/random.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_plan_invariance {

/// The other plans that run this case.
std::vector<Plan> other_plans(Run& run) {
  std::vector<Plan> plans;
  Case other = run.the_case();
  for (const Plan& plan : run.kernel().plans(run.problem())) {
    other.plan = plan;
    if (plan == run.the_case().plan || why_unsupported(run.kernel(), other)) continue;
    plans.push_back(plan);
  }
  return plans;
}

const LawRegistration registration{
    {.name = "plan_invariance",
     .statement = "two plans agree within the sum of their bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .applies = [](Run& run) { return !other_plans(run).empty(); },
     .check =
         [](Run& run) {
           const std::vector<Plan> plans = other_plans(run);
           Case other = run.the_case();
           other.plan = plans[static_cast<std::size_t>(random_below(
               other.inputs.seed, stream_other_plan, 0, static_cast<std::int64_t>(plans.size())))];
           const Launch launch = run.launch(other, run.inputs());
           const Answer& mine = run.answer();
           const Answer theirs = run.answer_to(other.problem, other.plan, run.inputs());
           const std::string failure =
               fmt::format("plan {} gives another answer", to_string(other.plan));
           return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                              within_bounds(theirs, mine), failure);
         }}};

}  // namespace law_plan_invariance
}  // namespace attest
