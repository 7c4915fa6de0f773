#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "experiments/claims/ledger.hpp"

namespace attest {
/// Argument of a formula's function.
using FormulaValue = std::variant<double, std::string>;
using FormulaFunction = std::function<double(std::span<const FormulaValue>)>;

/// Names that a formula may use.
struct FormulaScope {
  std::map<std::string, FormulaFunction, std::less<>> functions;
  std::map<std::string, double, std::less<>> values;
};

/// Argument number i as a number, a whole number or a text. Throws InvalidInput with the argument's
/// number and what it should be.
[[nodiscard]] double number_of(std::span<const FormulaValue> arguments, std::size_t i);
[[nodiscard]] std::int64_t integer_of(std::span<const FormulaValue> arguments, std::size_t i);
[[nodiscard]] const std::string& text_of(std::span<const FormulaValue> arguments, std::size_t i);
/// Throws InvalidInput unless there are `least` to `most` arguments.
void require_arguments(std::span<const FormulaValue> arguments, std::size_t least,
                       std::size_t most);

/// The value of a formula: an expression as studies have them
/// (experiments/study/language/expression.hpp), without units and conditions; texts are given to
/// functions only. Comparisons, `and`, `or` and `not` give 1 or 0, NaN where nothing is known: a
/// comparison with NaN, a quotient by 0. Throws InvalidInput with the formula and where it is
/// wrong; what functions throw passes.
[[nodiscard]] double evaluate_formula(std::string_view formula, const FormulaScope& scope);

/// min, max, abs, sqrt, log2, exp; and how a figure agrees with a printed one:
/// rounds_to(x, '19.03'): x is within half of the last digit that is printed;
/// within(x, y, p): x differs from y by at most p percent of y.
void add_arithmetic(FormulaScope& scope);

/// `text` with `{name}` or `{name:FORMAT}`, a format of fmt for doubles, replaced by the values.
/// Throws InvalidInput for a name that is none, a format that is none.
[[nodiscard]] std::string filled(std::string_view text, const FormulaScope& scope);

/// Result of a ledger row's figures on this machine.
struct Evaluation {
  const LedgerRow* row = nullptr;
  std::string ours{};               ///< the row's texts with their figures
  std::string because{};            ///< both empty where there are no records
  std::optional<Standing> found{};  ///< reproduced or refuted; nothing: not asked, or no records
  std::string trouble{};            ///< why there is no figure, such as a record that is not there

  /// The verdict that the figures give is not the one that is written down.
  [[nodiscard]] bool is_regression() const { return found && *found != row->verdict; }
};

/// Evaluates the figures of rows that have any. A record file that is not there is trouble of the
/// row; InvalidInput names the row whose formula is wrong.
[[nodiscard]] std::vector<Evaluation> evaluate(const std::vector<const LedgerRow*>& rows,
                                               const std::filesystem::path& results);

}  // namespace attest
