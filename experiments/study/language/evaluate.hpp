#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/language/expression.hpp"

namespace attest {

/// Value of an expression. A number is known to lie from `low` to `high`; true is 1 from 1 to 1,
/// and what may be either 0 to 1.
struct Value {
  enum class Kind { missing, number, text, truth };
  Kind kind = Kind::missing;
  double low = 0, mid = 0, high = 0;
  std::string text{};      ///< of Kind::text; of Kind::missing: what is not known
  bool is_unsure = false;  ///< the text could be another one

  /// Value that is not known; `what` names it.
  [[nodiscard]] static Value missing(std::string what);
  /// missing() when one of them is NaN.
  [[nodiscard]] static Value interval(double low, double mid, double high, std::string_view what);
  [[nodiscard]] static Value number(double value) { return interval(value, value, value, "it"); }
  [[nodiscard]] static Value of_text(std::string text);
  /// Truth that holds for all values of the intervals (`surely`) or for some (`possibly`).
  [[nodiscard]] static Value of_truth(bool surely, bool possibly);

  [[nodiscard]] bool is_surely_true() const { return kind == Kind::truth && low == 1; }
  [[nodiscard]] bool is_surely_false() const { return kind == Kind::truth && high == 0; }
};
/// Text for people: `1.32 (1.3 to 1.34)`, a text, `true`.
[[nodiscard]] std::string to_string(const Value& value);

/// Values of names at one point.
struct Row {
  std::function<Value(std::string_view)> value;
  std::map<std::string, std::string> axes{};  ///< by which ratio() pairs rows
  /// Values of calls, in the place of the functions that studies have; empty: those.
  std::function<Value(const Expression& call, const std::vector<Value>& arguments)> function{};
};

/// Value of an expression at one point; it was checked with Scope::values. Sides of a comparison
/// that are nearer than `tolerance`, relative to the larger one, count as equal.
[[nodiscard]] Value evaluate(const Expression& expression, const Row& row, double tolerance = 0);
/// Value of an expression over all points; it was checked with Scope::results.
[[nodiscard]] Value evaluate(const Expression& expression, const std::vector<Row>& rows,
                             double tolerance);

/// The value of a call that goes over points: median(), slope(), ...; nothing for other functions.
/// Points without a value of what is asked are left out; when none is left the value is missing.
/// Conditions read the middle of intervals. Bounds: as if all points were at their lows, or all at
/// their highs. `tolerance` is for comparisons in the argument of all() and any().
[[nodiscard]] std::optional<Value> aggregate(const Expression& call, const std::vector<Row>& rows,
                                             double tolerance);

}  // namespace attest
