#include "experiments/study/problem_grid.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/study/language/evaluate.hpp"
#include "experiments/study/language/problem_field.hpp"

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

void set_field(Problem& problem, const ProblemField& field, const std::string& text) {
  if (field.name == "mask") {
    problem.mask = mask_from_name(text);
  } else if (field.name == "element_type") {
    problem.element_type = element_type_from_name(text);
  } else {
    const double value = quantity_from(text).value().value;
    const bool is_whole = field.kind != ProblemField::Kind::size || value == std::floor(value);
    if (!(value >= field.low && value <= field.high) || !is_whole) {
      throw InvalidInput(fmt::format("problem.{} is {}; allowed: {}number from {} to {}",
                                     field.name, text, is_whole ? "a " : "a whole ",
                                     format_number(field.low), format_number(field.high)));
    }
    field.set(problem, value);
  }
}

Problem problem_from(Combination& axes) {
  for (auto& [axis, text] : axes) {
    const ProblemField& field = *find_problem_field(field_name(axis));
    if (field.kind != ProblemField::Kind::choice) text = computed(axis, text, axes);
  }
  Problem problem;
  const auto is_given = [&](std::string_view name) {
    return axes.contains(fmt::format("{}{}", prefix, name));
  };
  // In the order of the table: later ones have earlier ones as their defaults.
  for (const ProblemField& field : problem_fields()) {
    if (const auto found = axes.find(fmt::format("{}{}", prefix, field.name));
        found != axes.end()) {
      set_field(problem, field, found->second);
    } else if (field.name == "kv_heads") {
      problem.kv_heads = problem.query_heads;
    } else if (field.name == "key_len") {
      problem.key_len = problem.query_len;
    } else if (field.name == "scale") {
      problem.scale = default_scale(problem.head_dim);
    }
  }
  if (!is_window(problem.mask)) {
    // A window is for the masks among the values that have one.
    problem.window = {};
    axes.erase("problem.window_left");
    axes.erase("problem.window_right");
  }
  if (!is_given("length") && !is_given("query_len") && is_given("key_len"))
    problem.query_len = problem.key_len;
  validate(problem);
  return problem;
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

std::vector<ProblemPoint> problems_of(const std::vector<Grid>& grids) {
  std::vector<ProblemPoint> problems;
  std::set<Combination> seen;  // alternatives may meet
  for (const Grid& grid : grids) {
    for (Combination& axes : combinations_of(grid)) {
      ProblemPoint point;
      try {
        point.problem = problem_from(axes);
      } catch (const InvalidInput& error) {
        point.why_not = error.what();
      }
      point.axes = std::move(axes);
      if (seen.insert(point.axes).second) problems.push_back(std::move(point));
    }
  }
  return problems;
}

}  // namespace attest
