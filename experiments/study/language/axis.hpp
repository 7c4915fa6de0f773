#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem_field.hpp"
#include "core/records/case.hpp"

namespace attest {

/// A value along an axis: a number, or a name.
using AxisValue = std::variant<double, std::string>;
/// `4096`, `0.1`, `causal_top_left`: 15 digits, enough for every whole number of a study.
[[nodiscard]] std::string text_of(const AxisValue& value);
/// Values by the full names of their axes.
using AxisValues = std::map<std::string, AxisValue>;

/// Something that studies vary: a number or a choice that a case has. The keys of a study's file,
/// its JSON Schema, the names of expressions, points and their records all come from the table of
/// them, so a new axis is a row.
struct Axis {
  enum class Group { problem, plan, layout, inputs };
  Group group = Group::problem;
  std::string name;  ///< in its group, which is a key of the file: `key_len`
  std::string summary{};
  /// Names of a choice, in the order of their numbers; empty: numbers.
  std::vector<std::string> choices{};
  /// Names that are registered while the program runs; nullptr: `choices`.
  std::vector<std::string> (*registered_choices)() = nullptr;
  double low = 0, high = 0;  ///< of a number, both included
  bool is_whole = true;      ///< of a number
  bool is_key = true;        ///< false: the file says it elsewhere

  /// Nothing: the case has no such value.
  std::function<std::optional<AxisValue>(const Case&)> get = {};
  /// A value that the axis has.
  std::function<void(Case&, const AxisValue&)> set = {};

  const ProblemField* problem_field = nullptr;  ///< of the group problem
  const PlanField* plan_field = nullptr;        ///< of the group plan

  [[nodiscard]] std::string full_name() const;  ///< `problem.key_len`
  /// True if its values are names.
  [[nodiscard]] bool is_choice() const;
  [[nodiscard]] std::vector<std::string> names() const;  ///< of a choice
  /// `a whole number from 1 to 65536`; of a number.
  [[nodiscard]] std::string range() const;
  /// True for a number that the axis takes; not for NaN.
  [[nodiscard]] bool is_in_range(double number) const;
};
[[nodiscard]] std::string_view name_of(Axis::Group group);

/// Every axis, a group after the other.
[[nodiscard]] const std::vector<Axis>& all_axes();
/// Those that are keys of the group in a file.
[[nodiscard]] std::vector<const Axis*> keys_of(Axis::Group group);
/// nullptr for an unknown name.
[[nodiscard]] const Axis* find_axis(std::string_view full_name);
/// Axis of a group by its key there; nullptr for an unknown one.
[[nodiscard]] const Axis* find_axis(Axis::Group group, std::string_view name);

}  // namespace attest
