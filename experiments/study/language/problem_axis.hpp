#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/problem_field.hpp"

namespace attest {

/// An axis of studies along which problems differ: a field of Problem, or `length`, which is both
/// lengths at once.
struct ProblemAxis {
  const ProblemField* field;  ///< never null; of `length` that of the queries
  std::string_view name;
  std::string_view summary;
  double low = 0, high = 0;  ///< allowed, both included: of numbers
  bool is_both_lengths = false;

  [[nodiscard]] bool is_choice() const { return field->kind() == FieldKind::choice; }
  [[nodiscard]] bool is_whole() const { return !is_choice() && field->kind() != FieldKind::real; }
};
[[nodiscard]] std::span<const ProblemAxis> problem_axes();
/// nullptr for an unknown name.
[[nodiscard]] const ProblemAxis* find_problem_axis(std::string_view name);
/// Names of a choice: masks, element types.
[[nodiscard]] std::vector<std::string> choices_of(const ProblemAxis& axis);

/// Value of an axis that is no choice, the one in effect.
[[nodiscard]] double number_of(const ProblemAxis& axis, const Problem& problem);
/// The value is a number from low to high, and whole where the axis is.
void set_number(const ProblemAxis& axis, Problem& problem, double value);

/// Value of an axis in words: `causal_top_left`, `4096`. `length` is that of both lengths, and of
/// neither empty.
[[nodiscard]] std::string text_of(const ProblemAxis& axis, const Problem& problem);

}  // namespace attest
