#include "experiments/study/grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/run/default_plan.hpp"
#include "experiments/study/language/evaluate.hpp"
#include "experiments/study/language/problem_axis.hpp"

namespace attest {
namespace {

constexpr std::string_view prefix = "problem.";

std::string_view field_name(const std::string& axis) {
  return std::string_view(axis).substr(prefix.size());
}

/// The text of a value that is computed from other axes; the text itself where it is a number.
std::string computed(const std::string& axis, const std::string& text, const Combination& axes) {
  if (quantity_from(text)) return text;
  const ParsedExpression parsed = parse_expression(text);
  const Row row{.value = [&](std::string_view name) {
    const auto found = axes.find(fmt::format("{}{}", prefix, name));
    const auto number = found == axes.end() ? std::nullopt : quantity_from(found->second);
    return number ? Value::number(number->value) : Value::missing(std::string(name));
  }};
  const Value value = evaluate(parsed.expression.value(), row);
  if (value.kind != Value::Kind::number) {
    throw InvalidInput(fmt::format("{} = {}: {}", axis, text, to_string(value)));
  }
  return fmt::format("{:.15g}", value.mid);
}

void set_axis(Problem& problem, const ProblemAxis& axis, const std::string& text) {
  if (axis.is_choice()) return set_value(*axis.field, problem, text);
  const double value = quantity_from(text).value().value;
  const bool is_whole = !axis.is_whole() || value == std::floor(value);
  if (!(value >= axis.low && value <= axis.high) || !is_whole) {
    throw InvalidInput(fmt::format("problem.{} is {}; allowed: {}number from {} to {}", axis.name,
                                   text, is_whole ? "a " : "a whole ", format_number(axis.low),
                                   format_number(axis.high)));
  }
  set_number(axis, problem, value);
}

Problem problem_from(Combination& axes, const Operation& operation) {
  for (auto& [name, text] : axes) {
    if (!find_problem_axis(field_name(name))->is_choice()) text = computed(name, text, axes);
  }
  Problem problem{.operation = &operation};
  const auto is_given = [&](std::string_view name) {
    return axes.contains(fmt::format("{}{}", prefix, name));
  };
  for (const ProblemAxis& axis : problem_axes()) {
    const auto found = axes.find(fmt::format("{}{}", prefix, axis.name));
    if (found != axes.end()) set_axis(problem, axis, found->second);
  }
  follow_given(problem, [&](const ProblemField& field) { return is_given(field.axis_name()); });
  // A window is for the masks among the values that have one.
  for (const ProblemField& field : problem_fields()) {
    if (field.belongs_to == nullptr || field.belongs_to(problem)) continue;
    set_default(field, problem);
    axes.erase(fmt::format("{}{}", prefix, field.axis_name()));
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

std::string value_name(const PlanField& field, std::int64_t value) {
  return field.is_choice() ? std::string(field.values[static_cast<std::size_t>(value - 1)])
                           : std::to_string(value);
}

}  // namespace

std::vector<Combination> combinations_of(const Grid& grid) {
  std::vector<Combination> combinations{{}};
  for (const Axis& axis : grid) {
    std::vector<Combination> longer;
    for (const Combination& combination : combinations) {
      for (const std::string& value : axis.values) {
        longer.push_back(combination);
        longer.back()[axis.name] = value;
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

std::vector<ProblemPoint> problems_of(const std::vector<Grid>& grids, const Operation& operation) {
  std::vector<ProblemPoint> problems;
  std::set<Combination> seen;  // alternatives may meet
  for (const Grid& grid : grids) {
    for (Combination& axes : combinations_of(grid)) {
      ProblemPoint point;
      try {
        point.problem = problem_from(axes, operation);
      } catch (const InvalidInput& error) {
        point.why_not = error.what();
      }
      point.axes = std::move(axes);
      if (seen.insert(point.axes).second) problems.push_back(std::move(point));
    }
  }
  return problems;
}

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
