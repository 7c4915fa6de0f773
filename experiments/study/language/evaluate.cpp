#include "experiments/study/language/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace attest {
namespace {

Value arithmetic(const std::string& sign, const Value& a, const Value& b) {
  const auto of = [&](double x, double y) {
    return sign == "+"   ? x + y
           : sign == "-" ? x - y
           : sign == "*" ? x * y
           : sign == "/" ? x / y
                         : std::pow(x, y);
  };
  if (sign == "/" && b.low <= 0 && b.high >= 0) return Value::missing("a quotient by 0");
  if (sign == "^" && a.low < 0 && a.low != a.high)
    return Value::missing("a power of a negative value");
  // Monotone in each argument: the extremes are at the corners.
  const auto [low, high] =
      std::minmax({of(a.low, b.low), of(a.low, b.high), of(a.high, b.low), of(a.high, b.high)});
  return Value::interval(low, of(a.mid, b.mid), high, sign);
}

Value compared(const std::string& sign, const Value& a, const Value& b, double tolerance) {
  if (a.kind == Value::Kind::text) {
    const bool is_equal = a.text == b.text, is_unsure = a.is_unsure || b.is_unsure;
    const bool holds = (sign == "==") == is_equal;
    return Value::of_truth(holds && !is_unsure, holds || is_unsure);
  }
  const double slack = tolerance * std::max(std::abs(a.mid), std::abs(b.mid));
  const auto above = [&](const Value& x, const Value& y) {
    return Value::of_truth(x.low > y.high - slack, x.high > y.low - slack);
  };
  const auto not_below = [&](const Value& x, const Value& y) {
    return Value::of_truth(x.low >= y.high - slack, x.high >= y.low - slack);
  };
  if (sign == ">") return above(a, b);
  if (sign == "<") return above(b, a);
  if (sign == ">=") return not_below(a, b);
  if (sign == "<=") return not_below(b, a);
  const double farthest = std::max(a.high - b.low, b.high - a.low);
  const double nearest = std::max(a.low - b.high, b.low - a.high);
  const bool surely = farthest <= slack, possibly = nearest <= slack;
  return sign == "==" ? Value::of_truth(surely, possibly) : Value::of_truth(!possibly, !surely);
}

Value function_of(const std::string& name, const Value& x) {
  const auto of = [&](double (*f)(double)) {
    return Value::interval(f(x.low), f(x.mid), f(x.high), name);
  };
  if (name == "log") return of(std::log);
  if (name == "log2") return of(std::log2);
  if (name == "sqrt") return of(std::sqrt);
  if (name == "ceil") return of(std::ceil);
  if (name == "floor") return of(std::floor);
  const double largest = std::max(std::abs(x.low), std::abs(x.high));
  const double smallest =
      x.low <= 0 && x.high >= 0 ? 0 : std::min(std::abs(x.low), std::abs(x.high));
  return Value::interval(smallest, std::abs(x.mid), largest, name);
}

class Evaluator {
 public:
  Evaluator(const Row* row, const std::vector<Row>* rows, double tolerance)
      : row_(row), rows_(rows), tolerance_(tolerance) {}

  [[nodiscard]] Value value_of(const Expression& e) const {
    switch (e.kind) {
      case Expression::Kind::number:
        return Value::number(e.number.value);
      case Expression::Kind::text:
        return Value::of_text(e.word);
      case Expression::Kind::name: {
        return row_ == nullptr ? Value::missing(e.word) : row_->value(e.word);
      }
      case Expression::Kind::call:
        break;
      case Expression::Kind::unary:
      case Expression::Kind::binary:
        return combined(e);
    }
    if (rows_ != nullptr) {
      if (auto over_points = aggregate(e, *rows_, tolerance_)) return *std::move(over_points);
    }
    if (row_ != nullptr && row_->function) {
      std::vector<Value> arguments;
      for (const Expression& operand : e.operands) arguments.push_back(value_of(operand));
      return row_->function(e, arguments);
    }
    const Value x = value_of(e.operands.at(0));
    return x.kind == Value::Kind::missing ? x : function_of(e.word, x);
  }

 private:
  [[nodiscard]] Value combined(const Expression& e) const {
    const Value a = value_of(e.operands.at(0));
    if (e.word == "not")
      return a.kind == Value::Kind::missing ? a : Value::of_truth(a.high == 0, a.low == 0);
    if (e.kind == Expression::Kind::unary) {
      return a.kind == Value::Kind::missing ? a : Value::interval(-a.high, -a.mid, -a.low, "-");
    }
    const Value b = value_of(e.operands.at(1));
    // One side decides, whatever the other one is.
    if (e.word == "and" && (a.is_surely_false() || b.is_surely_false()))
      return Value::of_truth(false, false);
    if (e.word == "or" && (a.is_surely_true() || b.is_surely_true()))
      return Value::of_truth(true, true);
    if (a.kind == Value::Kind::missing) return a;
    if (b.kind == Value::Kind::missing) return b;
    if (e.word == "and")
      return Value::of_truth(a.low == 1 && b.low == 1, a.high == 1 && b.high == 1);
    if (e.word == "or")
      return Value::of_truth(a.low == 1 || b.low == 1, a.high == 1 || b.high == 1);
    if (e.word.find_first_of("<>=") != std::string::npos) return compared(e.word, a, b, tolerance_);
    return arithmetic(e.word, a, b);
  }

  const Row* row_;
  const std::vector<Row>* rows_;
  double tolerance_;
};

}  // namespace

Value Value::missing(std::string what) {
  Value value;
  value.text = std::move(what);
  return value;
}

Value Value::interval(double low, double mid, double high, std::string_view what) {
  if (std::isnan(low) || std::isnan(mid) || std::isnan(high))
    return missing(fmt::format("{} (NaN)", what));
  return {.kind = Kind::number, .low = std::min(low, mid), .mid = mid, .high = std::max(high, mid)};
}

Value Value::of_text(std::string text) {
  return {.kind = Kind::text, .text = std::move(text)};
}

Value Value::of_truth(bool surely, bool possibly) {
  return {.kind = Kind::truth,
          .low = surely ? 1.0 : 0.0,
          .mid = surely ? 1.0 : 0.0,
          .high = possibly ? 1.0 : 0.0};
}

std::string to_string(const Value& value) {
  switch (value.kind) {
    case Value::Kind::missing:
      return fmt::format("nothing is known of {}", value.text);
    case Value::Kind::text:
      return value.text + (value.is_unsure ? " (or another: the intervals overlap)" : "");
    case Value::Kind::truth:
      return value.low == 1 ? "true" : value.high == 0 ? "false" : "true or false";
    case Value::Kind::number:
      break;
  }
  if (value.low == value.high) return format_number(value.mid);
  return fmt::format("{} ({} to {})", format_number(value.mid), format_number(value.low),
                     format_number(value.high));
}

Value evaluate(const Expression& expression, const Row& row, double tolerance) {
  return Evaluator(&row, nullptr, tolerance).value_of(expression);
}

Value evaluate(const Expression& expression, const std::vector<Row>& rows, double tolerance) {
  return Evaluator(nullptr, &rows, tolerance).value_of(expression);
}

}  // namespace attest
