#include "core/run/default_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

/// The row's Plan if the kernel offers it.
std::optional<Plan> offered_plan(const TunedPlan& row, const KernelInfo& kernel,
                                 const Problem& problem, const std::vector<Plan>& offered) {
  try {
    const Plan plan = plan_from_string(row.plan);
    if (is_offered(kernel, problem, offered, plan)) return plan;
  } catch (const InvalidInput&) {
    // A field or a choice that Plans no longer have.
  }
  return std::nullopt;
}

}  // namespace

bool is_offered(const KernelInfo& kernel, const Problem& problem, const std::vector<Plan>& offered,
                const Plan& plan) {
  if (std::ranges::find(offered, plan) != offered.end()) return true;
  if (!kernel.unsupported || kernel.unsupported(problem, plan)) return false;
  return std::ranges::all_of(plan_fields(), [&](const PlanField& field) {
    return std::ranges::any_of(
        offered, [&](const Plan& other) { return other.*field.member == plan.*field.member; });
  });
}

std::optional<DefaultPlan> default_plan(const KernelInfo& kernel, const Problem& problem,
                                        std::string_view gpu, const TuningTable& table) {
  const std::vector<Plan> offered = kernel.plans(problem);
  if (offered.empty()) return std::nullopt;
  if (kernel.has_plan_rule) {
    return DefaultPlan{.plan = offered.front(), .origin = DefaultPlan::Origin::rule};
  }
  const TuningKey key = tuning_key(kernel.name, problem, gpu);
  DefaultPlan best{.plan = offered.front()};
  int stale_rows = 0;
  for (const TunedPlan& row : table.rows) {
    const std::optional<int> octaves = octaves_between(row.key, key);
    if (!octaves) continue;
    const std::optional<Plan> plan = offered_plan(row, kernel, problem, offered);
    if (!plan) {
      ++stale_rows;
    } else if (!best.row || *octaves < best.octaves) {
      using enum DefaultPlan::Origin;
      best = {
          .plan = *plan, .origin = *octaves == 0 ? tuned : nearby, .row = row, .octaves = *octaves};
    }
  }
  best.stale_rows = stale_rows;
  return best;
}

std::string to_string(const DefaultPlan& choice) {
  std::string text;
  switch (choice.origin) {
    case DefaultPlan::Origin::tuned:
      text = fmt::format("tuned on {} for {}", choice.row->key.gpu, choice.row->problem);
      break;
    case DefaultPlan::Origin::nearby:
      text = fmt::format("tuned on {} for {}, the nearest that was", choice.row->key.gpu,
                         choice.row->problem);
      break;
    case DefaultPlan::Origin::rule:
      text = "the kernel's rule for these lengths and heads";
      break;
    case DefaultPlan::Origin::first:
      text = "the kernel's first: nothing like this was tuned";
  }
  if (choice.stale_rows > 0) {
    text += fmt::format("; {} {} named a plan that the kernel does not offer here",
                        choice.stale_rows, choice.stale_rows == 1 ? "row" : "rows");
  }
  return text;
}

}  // namespace attest
