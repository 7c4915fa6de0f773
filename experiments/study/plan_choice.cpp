#include "experiments/study/plan_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/run/default_plan.hpp"

namespace attest {
namespace {

Plan overlaid(Plan plan, const Plan& wanted) {
  if (wanted.grid_order != 0) plan.group = 0;  // the group is part of an order
  for (const PlanField& field : plan_fields()) {
    if (wanted.*field.member != 0) plan.*field.member = wanted.*field.member;
  }
  if (wanted.key_splits == 1) plan.key_splits = 0;
  return plan;
}

int fields_apart(const Plan& a, const Plan& b) {
  int count = 0;
  for (const PlanField& field : plan_fields()) count += a.*field.member == b.*field.member ? 0 : 1;
  return count;
}

std::string value_name(const PlanField& field, std::int64_t value) {
  return field.is_choice() ? std::string(field.values[static_cast<std::size_t>(value - 1)])
                           : std::to_string(value);
}

}  // namespace

PlanChoice::PlanChoice(const KernelInfo& kernel, const Problem& problem, std::string_view gpu_name)
    : kernel_(kernel), problem_(problem), offered_(kernel.plans(problem)) {
  std::erase_if(offered_, [&](const Plan& plan) {
    return why_unsupported(kernel, problem, plan).has_value();
  });
  if (const auto choice = default_plan(kernel, problem, gpu_name)) default_ = choice->plan;
  std::ranges::stable_sort(offered_, {},
                           [&](const Plan& plan) { return fields_apart(plan, default_); });
}

std::variant<Plan, std::string> PlanChoice::pick(const Plan& wanted) const {
  const Plan nearest = overlaid(default_, wanted);
  // Not offered itself: a mixture of what is, or a tuned one.
  if (!offered_.empty() && is_offered(kernel_, problem_, offered_, nearest)) return nearest;
  for (const Plan& plan : offered_) {
    if (overlaid(plan, wanted) == plan) return plan;
  }
  for (const Plan& plan : offered_) {
    const Plan mixture = overlaid(plan, wanted);
    if (is_offered(kernel_, problem_, offered_, mixture)) return mixture;
  }
  return why_none(wanted);
}

std::vector<std::int64_t> PlanChoice::values_of(const PlanField& field) const {
  std::set<std::int64_t> values;
  for (const Plan& plan : offered_) {
    if (plan.*field.member != 0) values.insert(plan.*field.member);
  }
  if (field.member == &Plan::key_splits && !values.empty()) values.insert(1);
  return {values.begin(), values.end()};
}

std::string PlanChoice::why_none(const Plan& wanted) const {
  if (offered_.empty()) {
    const auto why = why_unsupported(kernel_, problem_, default_);
    return why ? *why : fmt::format("{} offers no Plan for the problem", kernel_.name);
  }
  for (const PlanField& field : plan_fields()) {
    const std::int64_t value = wanted.*field.member;
    const auto values = values_of(field);
    if (value == 0 || std::ranges::find(values, value) != values.end()) continue;
    if (values.empty()) return fmt::format("{} has no choice of {}", kernel_.name, field.name);
    std::vector<std::string> names;
    for (const std::int64_t v : values) names.push_back(value_name(field, v));
    return fmt::format("{} offers {} {}, not {}", kernel_.name, field.name, fmt::join(names, ", "),
                       value_name(field, value));
  }
  return fmt::format("{} offers no Plan with {}", kernel_.name, to_string(wanted));
}

}  // namespace attest
