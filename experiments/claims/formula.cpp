#include "experiments/claims/formula.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.hpp"
#include "experiments/claims/functions.hpp"
#include "experiments/study/language/evaluate.hpp"

namespace attest {
namespace {

/// The names and functions of one formula, and where it is wrong.
class FormulaRow {
 public:
  FormulaRow(std::string_view text, const FormulaScope& scope) : text_(text), scope_(scope) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw InvalidInput(fmt::format("formula '{}': {}", text_, what));
  }

  void require_no_units(const Expression& e) const {
    if (e.kind == Expression::Kind::number && e.number.dimension != Dimension::number) {
      fail(fmt::format("a number without a unit is wanted at character {}", e.at + 1));
    }
    for (const Expression& operand : e.operands) require_no_units(operand);
  }

  [[nodiscard]] Value value_of(std::string_view name) const {
    const auto value = scope_.values.find(name);
    if (value == scope_.values.end()) fail(fmt::format("'{}' has no value", name));
    return Value::number(value->second);
  }

  [[nodiscard]] Value call(const Expression& e, const std::vector<Value>& given) const {
    const auto function = scope_.functions.find(e.word);
    if (function == scope_.functions.end()) {
      fail(fmt::format("there is no function '{}' at character {}", e.word, e.at + 1));
    }
    if (!e.where.empty()) fail("functions of formulas take no condition");
    std::vector<FormulaValue> arguments;
    for (const Value& value : given) {
      if (value.kind == Value::Kind::text) {
        arguments.emplace_back(value.text);
      } else {
        arguments.emplace_back(number_of(value));
      }
    }
    try {
      return Value::number(function->second(arguments));
    } catch (const InvalidInput& error) {
      throw InvalidInput(fmt::format("{}(): {}", e.word, error.what()));
    }
  }

  [[nodiscard]] double number_of(const Value& value) const {
    if (value.kind == Value::Kind::text) fail("a text can only be given to a function");
    return value.kind == Value::Kind::missing ? std::numeric_limits<double>::quiet_NaN()
                                              : value.mid;
  }

 private:
  std::string_view text_;
  const FormulaScope& scope_;
};

Evaluation evaluated(const LedgerRow& row, FormulaScope scope) {
  Evaluation evaluation{.row = &row};
  try {
    for (const auto& [name, formula] : row.figures) {
      scope.values[name] = evaluate_formula(formula, scope);
    }
    evaluation.ours = filled(row.ours, scope);
    evaluation.because = filled(row.because, scope);
    if (!row.holds.empty()) {
      const bool holds = evaluate_formula(row.holds, scope) == 1;
      evaluation.found = holds ? Standing::reproduced : Standing::refuted;
    }
  } catch (const NoRecords& missing) {
    evaluation.trouble = missing.what();
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("{}: {}: {}", row.place, row.id, error.what()));
  }
  return evaluation;
}

}  // namespace

void require_arguments(std::span<const FormulaValue> arguments, std::size_t least,
                       std::size_t most) {
  if (arguments.size() >= least && arguments.size() <= most) return;
  throw InvalidInput(
      fmt::format("{} arguments are given, {} to {} are wanted", arguments.size(), least, most));
}

double number_of(std::span<const FormulaValue> arguments, std::size_t i) {
  if (const auto* value = std::get_if<double>(&arguments[i])) return *value;
  throw InvalidInput(fmt::format("argument {} is a text, a number is wanted", i + 1));
}

std::int64_t integer_of(std::span<const FormulaValue> arguments, std::size_t i) {
  const double value = number_of(arguments, i);
  if (value == std::floor(value) && std::abs(value) < 0x1p53) {
    return static_cast<std::int64_t>(value);
  }
  throw InvalidInput(fmt::format("argument {} is {}, a whole number is wanted", i + 1, value));
}

const std::string& text_of(std::span<const FormulaValue> arguments, std::size_t i) {
  if (const auto* text = std::get_if<std::string>(&arguments[i])) return *text;
  throw InvalidInput(fmt::format("argument {} is a number, a text in quotes is wanted", i + 1));
}

double evaluate_formula(std::string_view formula, const FormulaScope& scope) {
  const ParsedExpression parsed = parse_expression(formula);
  if (!parsed.expression) {
    throw InvalidInput(fmt::format("formula '{}': {} at character {}", formula,
                                   parsed.error.sentence, parsed.error.at + 1));
  }
  const FormulaRow names(formula, scope);
  names.require_no_units(*parsed.expression);
  const Row row{
      .value = [&](std::string_view name) { return names.value_of(name); },
      .function = [&](const Expression& call,
                      const std::vector<Value>& arguments) { return names.call(call, arguments); }};
  return names.number_of(evaluate(*parsed.expression, row));
}

std::string filled(std::string_view text, const FormulaScope& scope) {
  std::string result;
  while (true) {
    const std::size_t open = text.find('{');
    result += text.substr(0, open);
    if (open == std::string_view::npos) return result;
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) throw InvalidInput("'{' without '}' in a text");
    const std::string_view place = text.substr(open + 1, close - open - 1);
    const std::string_view name = place.substr(0, place.find(':'));
    const auto value = scope.values.find(name);
    if (value == scope.values.end()) {
      throw InvalidInput(fmt::format("'{}' in a text has no value", name));
    }
    const std::string format = fmt::format("{{{}}}", place.substr(name.size()));
    try {
      result += fmt::format(fmt::runtime(format), value->second);
    } catch (const fmt::format_error& error) {
      throw InvalidInput(fmt::format("'{}' is no format of a number: {}", format, error.what()));
    }
    text.remove_prefix(close + 1);
  }
}

std::vector<Evaluation> evaluate(const std::vector<const LedgerRow*>& rows,
                                 const std::filesystem::path& results) {
  FormulaScope scope;
  add_arithmetic(scope);
  add_models(scope);
  add_records(scope, results);
  std::vector<Evaluation> evaluations;
  evaluations.reserve(rows.size());
  for (const LedgerRow* row : rows) evaluations.push_back(evaluated(*row, scope));
  return evaluations;
}

}  // namespace attest
