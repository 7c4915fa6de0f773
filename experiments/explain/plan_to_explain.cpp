#include "experiments/explain/plan_to_explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/attention/common_operation.hpp"
#include "core/base/error.hpp"
#include "core/run/default_plan.hpp"
#include "core/run/default_problem.hpp"
#include "experiments/explain/explanation.hpp"

namespace attest {
namespace {

/// Number of fields set in `given` that `plan` has alike; then, how few others it sets.
std::pair<int, int> likeness(const Plan& plan, const Plan& given) {
  int alike = 0, others = 0;
  for (const PlanField& field : plan_fields()) {
    const bool is_given = given.*field.member != 0;
    alike += is_given && plan.*field.member == given.*field.member;
    others += !is_given && plan.*field.member != 0;
  }
  return {alike, -others};
}

/// Throws InvalidInput for a field that none of the kernel's own Plans sets.
void require_known_fields(const KernelInfo& kernel, const std::vector<Plan>& offered,
                          const Plan& given) {
  std::vector<std::string_view> known;
  for (const PlanField& field : plan_fields()) {
    const bool is_set =
        std::ranges::any_of(offered, [&](const Plan& plan) { return plan.*field.member != 0; });
    if (is_set) known.push_back(field.name);
  }
  for (const PlanField& field : plan_fields()) {
    if (given.*field.member == 0 || std::ranges::find(known, field.name) != known.end()) continue;
    throw InvalidInput(
        fmt::format("plan field '{}' is set; kernel {} offers {}", field.name, kernel.name,
                    known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
}

/// `given` with what it leaves open taken from the kernel's own Plan that is most like it, the
/// first of several.
Plan completed(const std::vector<Plan>& offered, const Plan& given) {
  if (given == Plan{}) return offered.front();
  Plan plan = *std::ranges::max_element(
      offered, {}, [&](const Plan& candidate) { return likeness(candidate, given); });
  for (const PlanField& field : plan_fields()) {
    if (given.*field.member != 0) plan.*field.member = given.*field.member;
  }
  return plan;
}

}  // namespace

ChosenPlan plan_to_explain(const KernelInfo& kernel, const Problem& problem, const GpuModel& gpu,
                           const Plan& given, const Paging& paging) {
  std::vector<Plan> offered = kernel.plans(problem);
  if (offered.empty()) {
    // So that the kernel's sentence is about the problem and not about a Plan without tiles.
    offered = kernel.plans(
        {.head_dim = problem.head_dim, .mask = problem.mask, .element_type = problem.element_type});
  }
  ChosenPlan chosen{given};
  if (const auto choice = default_plan(kernel, problem, gpu.driver_name);
      choice && given == Plan{}) {
    chosen = {choice->plan, to_string(*choice)};
  } else if (!offered.empty()) {
    require_known_fields(kernel, offered, given);
    chosen.plan = completed(offered, given);
  }
  Case c{.kernel = kernel.name, .problem = problem, .plan = chosen.plan};
  c.layouts.paging = paging;
  if (const auto reason = why_unsupported(kernel, c)) {
    throw InvalidInput(fmt::format("kernel {} cannot run plan '{}' of problem '{}': {}",
                                   kernel.name, to_string(chosen.plan), to_string(problem),
                                   *reason));
  }
  if (given == Plan{} && !why_not_run(kernel, problem, chosen.plan, gpu, paging).empty()) {
    const auto fits = [&](const Plan& plan) {
      c.plan = plan;
      return !why_unsupported(kernel, c) && why_not_run(kernel, problem, plan, gpu, paging).empty();
    };
    const auto first = std::ranges::find_if(offered, fits);
    if (first != offered.end()) {
      return {*first, fmt::format("the kernel's first that fits this device; not {}: '{}'",
                                  chosen.origin, to_string(chosen.plan))};
    }
  }
  return chosen;
}

Problem problem_to_explain(const KernelInfo& kernel, const std::optional<std::string>& text) {
  if (!text) return default_problem(kernel, problem_from_string(usual_problem));
  Problem problem = problem_of(*kernel.operation, *text);
  const bool is_open = !named_element_type(*text) && !kernel.element_types.empty();
  const auto& types = kernel.element_types;
  if (is_open && std::ranges::find(types, problem.element_type) == types.end()) {
    problem.element_type = types.front();
  }
  return problem;
}

}  // namespace attest
