#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/language/expression.hpp"

namespace attest {

/// Type of what a name or a part of an expression stands for.
struct ValueType {
  enum class Kind { number, text, truth };
  Kind kind = Kind::number;
  Dimension dimension = Dimension::number;
  std::vector<std::string> texts{};  ///< Kind::text: those that occur; empty: any
};

/// The names that an expression may use.
struct Vocabulary {
  std::map<std::string, ValueType, std::less<>> names;
  std::vector<std::string> open;   ///< beginnings of names that stand for some number: `counter.`
  std::vector<std::string> later;  ///< beginnings of names that have no value yet: `time`

  /// nullptr for an unknown name.
  [[nodiscard]] const ValueType* find(std::string_view name) const;
  /// All names, those that are open as `counter.NAME`; for complaints.
  [[nodiscard]] std::vector<std::string> all() const;
};

/// Context in which an expression is asked.
enum class Scope {
  values,  ///< every name has one value
  results  ///< names have a value at every point: only in median(), all(), ...
};

/// Resolves bare words that stand for texts (`plan.grid_order == q_slowest`) and returns all errors
/// of names, functions, types and units. A result other than `wanted` is an error as well.
[[nodiscard]] std::vector<ExpressionError> check(Expression& expression,
                                                 const Vocabulary& vocabulary, Scope scope,
                                                 ValueType::Kind wanted);

/// A function of expressions.
struct ExpressionFunction {
  std::string_view name;
  std::size_t arguments;
  bool is_aggregate;  ///< over points; may have a condition
  std::string_view summary;
};
/// All functions of expressions, in the order of the reference.
[[nodiscard]] const std::vector<ExpressionFunction>& expression_functions();

/// Names in an expression, each once.
[[nodiscard]] std::vector<std::string> names_in(const Expression& expression);

}  // namespace attest
