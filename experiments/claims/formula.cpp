#include "experiments/claims/formula.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/error.hpp"

namespace attest {
namespace {

constexpr int longest = 200;

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool continues_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Recursive descent; each function reads what binds tighter than its caller's operators.
class Reader {
 public:
  Reader(std::string_view text, const FormulaScope& scope) : text_(text), scope_(scope) {}

  double whole() {
    const double value = either();
    if (next() != '\0') fail("an operator or the end is wanted");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw InvalidInput(fmt::format("formula '{}': {} at character {}", text_, what, at_ + 1));
  }

  /// Bounds the recursion, by bounding the length.
  void deeper() {
    if (++values_ > longest) fail(fmt::format("more than {} values and signs", longest));
  }

  char next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(std::string_view token) {
    (void)next();
    if (text_.substr(at_, token.size()) != token) return false;
    const std::size_t end = at_ + token.size();
    const bool is_word = starts_name(token.front());
    if (is_word && end < text_.size() && continues_name(text_[end])) return false;
    at_ = end;
    return true;
  }

  double either() {
    double value = both();
    while (take("or")) {
      const double right = both();
      value = static_cast<double>(value != 0 || right != 0);
    }
    return value;
  }

  double both() {
    double value = negation();
    while (take("and")) {
      const double right = negation();
      value = static_cast<double>(value != 0 && right != 0);
    }
    return value;
  }

  double negation() {
    if (!take("not")) return comparison();
    deeper();
    return static_cast<double>(negation() == 0);
  }

  double comparison() {
    const double left = sum();
    // Longer operators first. A NaN on either side makes each of them false.
    for (const std::string_view op : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!take(op)) continue;
      const double right = sum();
      if (op == "<=") return static_cast<double>(left <= right);
      if (op == ">=") return static_cast<double>(left >= right);
      if (op == "==") return static_cast<double>(left == right);
      if (op == "!=") return static_cast<double>(left < right || left > right);
      return static_cast<double>(op == "<" ? left < right : left > right);
    }
    return left;
  }

  double sum() {
    double value = product();
    while (true) {
      if (take("+")) {
        value += product();
      } else if (take("-")) {
        value -= product();
      } else {
        return value;
      }
    }
  }

  double product() {
    double value = power();
    while (true) {
      if (take("*")) {
        value *= power();
      } else if (take("/")) {
        value /= power();
      } else {
        return value;
      }
    }
  }

  double power() {
    if (take("-")) {
      deeper();
      return -power();
    }
    const double base = primary();
    return take("^") ? std::pow(base, power()) : base;
  }

  double primary() {
    deeper();
    const char c = next();
    if (take("(")) {
      const double value = either();
      if (!take(")")) fail("')' is wanted");
      return value;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    if (!starts_name(c)) fail("a number, a name or '(' is wanted");
    const std::string_view name = word();
    if (next() == '(') return call(name);
    const auto value = scope_.values.find(name);
    if (value == scope_.values.end()) fail(fmt::format("'{}' has no value", name));
    return value->second;
  }

  double number() {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("a number is wanted");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  std::string_view word() {
    const std::size_t first = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    return text_.substr(first, at_ - first);
  }

  double call(std::string_view name) {
    const auto function = scope_.functions.find(name);
    if (function == scope_.functions.end()) fail(fmt::format("there is no function '{}'", name));
    (void)take("(");
    std::vector<FormulaValue> arguments;
    if (!take(")")) {
      do {
        arguments.push_back(argument());
      } while (take(","));
      if (!take(")")) fail("',' or ')' is wanted");
    }
    try {
      return function->second(arguments);
    } catch (const InvalidInput& error) {
      throw InvalidInput(fmt::format("{}(): {}", name, error.what()));
    }
  }

  FormulaValue argument() {
    const char quote = next();
    if (quote != '\'' && quote != '"') return either();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    std::string text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return text;
  }

  std::string_view text_;
  const FormulaScope& scope_;
  std::size_t at_ = 0;
  int values_ = 0;
};

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
  return Reader(formula, scope).whole();
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

}  // namespace attest
