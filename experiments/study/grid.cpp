#include "experiments/study/grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/run/default_plan.hpp"
#include "experiments/study/language/evaluate.hpp"

namespace attest {
namespace {

/// The value; one that is computed from the others.
AxisValue computed(const Axis& axis, const WrittenValue& written, const Combination& axes) {
  if (const auto value = stated(written)) return *value;
  const auto& condition = std::get<Condition>(written);
  const Row row{.value = [&](std::string_view name) {
    const auto found = axes.find(find_axis(Axis::Group::problem, name));
    const auto* number = found == axes.end() ? nullptr : std::get_if<double>(&found->second);
    return number != nullptr ? Value::number(*number) : Value::missing(std::string(name));
  }};
  const Value value = evaluate(*condition.expression, row);
  if (value.kind != Value::Kind::number) {
    throw InvalidInput(
        fmt::format("{} = {}: {}", axis.full_name(), condition.text, to_string(value)));
  }
  return value.mid;
}

void require_in_range(const Axis& axis, const AxisValue& value) {
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || axis.is_in_range(*number)) return;
  throw InvalidInput(
      fmt::format("{} is {}; allowed: {}", axis.full_name(), text_of(value), axis.range()));
}

/// The problem of values; those of axes that the problem has not are taken from them.
Problem problem_from(AxisValues& axes, const Operation& operation) {
  Case c{.problem = {.operation = &operation}};
  for (const Axis* axis : keys_of(Axis::Group::problem)) {
    const auto found = axes.find(axis->full_name());
    if (found == axes.end()) continue;
    require_in_range(*axis, found->second);
    axis->set(c, found->second);
  }
  Problem& problem = c.problem;
  const auto is_given = [&](std::string_view name) {
    return axes.contains(fmt::format("problem.{}", name));
  };
  follow_given(problem, [&](const ProblemField& field) { return is_given(field.axis_name()); });
  // A window is for the masks among the values that have one.
  for (const ProblemField& field : problem_fields()) {
    if (field.belongs_to == nullptr || field.belongs_to(problem)) continue;
    set_default(field, problem);
    axes.erase(fmt::format("problem.{}", field.axis_name()));
  }
  if (!is_given("length") && !is_given("query_len") && is_given("key_len"))
    problem.query_len = problem.key_len;
  validate(problem);
  return problem;
}

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

}  // namespace

std::vector<Combination> combinations_of(const Grid& grid) {
  std::vector<Combination> combinations{{}};
  for (const VariedAxis& axis : grid) {
    std::vector<Combination> longer;
    for (const Combination& combination : combinations) {
      for (const WrittenValue& value : axis.values) {
        longer.push_back(combination);
        longer.back()[axis.axis] = value;
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

AxisValues values_of(const Combination& combination) {
  AxisValues values;
  for (const auto& [axis, value] : combination) {
    values[axis->full_name()] = computed(*axis, value, combination);
  }
  return values;
}

std::vector<ProblemPoint> problems_of(const std::vector<Grid>& grids, const Operation& operation) {
  std::vector<ProblemPoint> problems;
  std::set<AxisValues> seen;  // alternatives may meet
  for (const Grid& grid : grids) {
    for (const Combination& combination : combinations_of(grid)) {
      ProblemPoint point;
      try {
        point.axes = values_of(combination);
        point.problem = problem_from(point.axes, operation);
      } catch (const InvalidInput& error) {
        point.why_not = error.what();
      }
      if (seen.insert(point.axes).second) problems.push_back(std::move(point));
    }
  }
  return problems;
}

PlanChoice::PlanChoice(const KernelInfo& kernel, const Problem& problem, std::string_view gpu)
    : kernel_(kernel), problem_(problem), offered_(kernel.plans(problem)) {
  std::erase_if(offered_, [&](const Plan& plan) {
    return why_unsupported(kernel, problem, plan).has_value();
  });
  if (const auto choice = default_plan(kernel, problem, gpu)) {
    default_ = choice->plan;
    const bool is_scaled = choice->scaled_to != 0;  // to a value that no offered Plan need have
    if (is_scaled && !why_unsupported(kernel, problem, default_)) offered_.push_back(default_);
  }
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
    for (const std::int64_t v : values) names.push_back(text_of(field, v));
    return fmt::format("{} offers {} {}, not {}", kernel_.name, field.name, fmt::join(names, ", "),
                       text_of(field, value));
  }
  return fmt::format("{} offers no Plan with {}", kernel_.name, to_string(wanted));
}

}  // namespace attest
