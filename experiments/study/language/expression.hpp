#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/quantity.hpp"

namespace attest {

/// A node of an expression, with the nodes below it.
///   or, and, not, comparisons (< <= > >= == !=), + -, * /, unary -, ^, in rising order of strength
///   numbers with units (227KiB, 5ms, 2%), "texts", names (time, plan.key_tile), calls
/// A call may end in a condition: `median(time where plan.stages == 2)`.
struct Expression {
  enum class Kind { number, text, name, unary, binary, call };
  Kind kind = Kind::number;
  std::size_t at = 0;  ///< byte of the text where it begins; of a binary one its operator
  Quantity number{};   ///< Kind::number
  std::string word{};  ///< text, name, operator or function
  std::vector<Expression> operands{};  ///< arguments of a call without its condition
  std::vector<Expression> where{};     ///< the condition: none or one
};

/// Complaint about an expression.
struct ExpressionError {
  std::size_t at = 0;  ///< byte of the text
  std::string sentence;
};

/// The expression or the first error.
struct ParsedExpression {
  std::optional<Expression> expression{};
  ExpressionError error{};
};
/// Texts of more than 1,000 bytes and more than 40 levels of nesting are refused.
[[nodiscard]] ParsedExpression parse_expression(std::string_view text);

}  // namespace attest
