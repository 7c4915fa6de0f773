#include "experiments/study/language/problem_axis.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "core/base/quantity.hpp"

namespace attest {
namespace {

/// Axes are doubles.
constexpr double largest_seed = 0x1p53;

ProblemAxis axis_of(const ProblemField& field) {
  ProblemAxis axis{.field = &field,
                   .name = field.axis_name(),
                   .summary = field.summary,
                   .low = field.low,
                   .high = field.high};
  if (field.kind() == FieldKind::seed) axis.high = largest_seed;
  // A study that wants what 0 stands for leaves the field out.
  if (field.in_effect != nullptr) axis.low = 1;
  return axis;
}

std::vector<ProblemAxis> make_problem_axes() {
  std::vector<ProblemAxis> axes;
  for (const ProblemField& field : problem_fields()) {
    if (!field.is_axis) continue;
    axes.push_back(axis_of(field));
    if (field.name != "key_len") continue;
    ProblemAxis both = axes[axes.size() - 2];
    both.name = "length";
    both.summary = "queries and as many keys";
    both.is_both_lengths = true;
    axes.push_back(both);
  }
  return axes;
}

}  // namespace

std::span<const ProblemAxis> problem_axes() {
  static const std::vector<ProblemAxis> axes = make_problem_axes();
  return axes;
}

const ProblemAxis* find_problem_axis(std::string_view name) {
  const auto found = std::ranges::find(problem_axes(), name, &ProblemAxis::name);
  return found == problem_axes().end() ? nullptr : &*found;
}

std::vector<std::string> choices_of(const ProblemAxis& axis) {
  return {axis.field->choices.begin(), axis.field->choices.end()};
}

double number_of(const ProblemAxis& axis, const Problem& problem) {
  if (axis.field->in_effect != nullptr) {
    return static_cast<double>(axis.field->in_effect(problem));
  }
  return std::visit(
      []<typename Value>(Value value) {
        if constexpr (std::is_arithmetic_v<Value>) {
          return static_cast<double>(value);
        } else {
          return 0.0;
        }
      },
      value_of(*axis.field, problem));
}

void set_number(const ProblemAxis& axis, Problem& problem, double value) {
  FieldValue number = value_of(*axis.field, problem);
  std::visit(
      [&]<typename Value>(Value& member) {
        if constexpr (std::is_arithmetic_v<Value>) member = static_cast<Value>(value);
      },
      number);
  set_value(*axis.field, problem, number);
  if (axis.is_both_lengths) problem.key_len = problem.query_len;
}

std::string text_of(const ProblemAxis& axis, const Problem& problem) {
  if (axis.is_choice()) return text_of(*axis.field, problem);
  if (axis.is_both_lengths && problem.query_len != problem.key_len) return "";
  return format_number(number_of(axis, problem));
}

}  // namespace attest
