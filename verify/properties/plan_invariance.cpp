#include <fmt/format.h>

#include "core/random.hpp"
#include "verify/property.hpp"

namespace attest {
namespace {

/// The other plans that run this problem.
std::vector<Plan> other_plans(Run& run) {
  std::vector<Plan> plans;
  for (const Plan& plan : run.kernel().plans(run.problem())) {
    if (plan == run.the_case().plan || why_unsupported(run.kernel(), run.problem(), plan)) continue;
    plans.push_back(plan);
  }
  return plans;
}

/// The two bounds added: how far two correct results can be apart.
Tensor<double> sum(const Tensor<double>& a, const Tensor<double>& b) {
  Tensor<double> total = a;
  for (std::size_t i = 0; i < total.values().size(); ++i) total.values()[i] += b.values()[i];
  return total;
}

Tensor<double> widened(const Tensor<float>& from) {
  Tensor<double> to(from.shape());
  for (std::size_t i = 0; i < to.values().size(); ++i) to.values()[i] = from.values()[i];
  return to;
}

const PropertyRegistration registration{
    {.name = "plan_invariance",
     .statement = "two plans agree within the sum of their bounds",
     .cost = Property::Cost::more_launches,
     .layer = Layer::bound,
     .applies = [](Run& run) { return !other_plans(run).empty(); },
     .check =
         [](Run& run) {
           const std::vector<Plan> plans = other_plans(run);
           Case other = run.the_case();
           other.plan = plans[static_cast<std::size_t>(
               random_below(other.inputs.seed, 80, 0, static_cast<std::int64_t>(plans.size())))];
           const Launch launch = run.launch(other, run.inputs());
           const Answer& mine = run.answer();
           const Answer theirs = run.answer_to(other.problem, other.plan, run.inputs());
           const std::string failure =
               fmt::format("plan {} gives another answer", to_string(other.plan));
           const Check o = check_of("O",
                                    compare(launch.outputs.o, widened(run.base().outputs.o),
                                            sum(mine.o_bound, theirs.o_bound)),
                                    failure);
           if (o.status == Check::Status::failed) return o;
           return check_of("LSE",
                           compare(launch.outputs.lse, widened(run.base().outputs.lse),
                                   sum(mine.lse_bound, theirs.lse_bound)),
                           failure);
         }}};

}  // namespace
}  // namespace attest
