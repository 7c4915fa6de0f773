#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "experiments/study/language/evaluate.hpp"
#include "experiments/study/language/vocabulary.hpp"

namespace attest {
namespace {

using Numbers = std::vector<double>;

double median(Numbers values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}
double mean(const Numbers& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double geomean(Numbers values) {
  for (double& value : values) value = std::log(value);
  return std::exp(mean(values));
}

/// The middles alone: what a condition asks.
Row middles_of(const Row& row) {
  return {.value = [&row](std::string_view name) {
    Value value = row.value(name);
    value.low = value.high = value.mid;
    return value;
  }};
}

class Aggregate {
 public:
  Aggregate(const Expression& call, const std::vector<Row>& rows, double tolerance)
      : call_(call), tolerance_(tolerance) {
    for (const Row& row : rows) {
      const bool is_meant =
          call.where.empty() || evaluate(call.where[0], middles_of(row)).is_surely_true();
      if (is_meant) rows_.push_back(&row);
    }
  }

  [[nodiscard]] Value value() const {
    const std::string& name = call_.word;
    if (name == "count") return Value::number(static_cast<double>(rows_.size()));
    if (name == "all" || name == "any") return truth(name == "all");
    if (name == "slope") return slope();
    if (name == "ratio") return ratio();
    if (name == "at_min") return at_extreme(1);
    if (name == "at_max") return at_extreme(-1);
    return statistic([&](Numbers values) {
      return name == "median" ? median(std::move(values))
             : name == "mean" ? mean(values)
             : name == "min"  ? std::ranges::min(values)
             : name == "max"  ? std::ranges::max(values)
                              : geomean(std::move(values));
    });
  }

 private:
  [[nodiscard]] Value argument(std::size_t i, const Row& row) const {
    return evaluate(call_.operands.at(i), row);
  }

  [[nodiscard]] Value nothing() const {
    if (rows_.empty())
      return Value::missing(fmt::format("{}(): there is no such point", call_.word));
    for (std::size_t i = 0; i < call_.operands.size(); ++i) {
      Value value = argument(i, *rows_.front());
      if (value.kind == Value::Kind::missing) return value;
    }
    return Value::missing(fmt::format("{}(): no two points differ in nothing else", call_.word));
  }

  template <typename Function>
  [[nodiscard]] Value statistic_of(const std::vector<Value>& values, Function function) const {
    if (values.empty()) return nothing();
    Numbers lows, mids, highs;
    for (const Value& value : values) {
      lows.push_back(value.low);
      mids.push_back(value.mid);
      highs.push_back(value.high);
    }
    return Value::interval(function(lows), function(mids), function(highs), call_.word);
  }
  template <typename Function>
  [[nodiscard]] Value statistic(Function function) const {
    std::vector<Value> values;
    for (const Row* row : rows_) {
      Value value = argument(0, *row);
      if (value.kind == Value::Kind::number) values.push_back(std::move(value));
    }
    return statistic_of(values, function);
  }

  [[nodiscard]] Value truth(bool is_all) const {
    Value result = Value::of_truth(is_all, is_all);
    bool is_known = false;
    for (const Row* row : rows_) {
      const Value value = evaluate(call_.operands.at(0), *row, tolerance_);
      if (value.kind != Value::Kind::truth) continue;
      is_known = true;
      const auto join = [&](double a, double b) {
        return is_all ? std::min(a, b) : std::max(a, b);
      };
      result =
          Value::of_truth(join(result.low, value.low) == 1, join(result.high, value.high) == 1);
    }
    return is_known ? result : nothing();
  }

  /// Of least squares; x is taken at its middle. The slope is linear in y.
  [[nodiscard]] Value slope() const {
    std::vector<std::pair<double, Value>> points;
    for (const Row* row : rows_) {
      Value y = argument(0, *row);
      const Value x = argument(1, *row);
      if (x.kind == Value::Kind::number && y.kind == Value::Kind::number)
        points.emplace_back(x.mid, std::move(y));
    }
    if (points.empty()) return nothing();
    Numbers xs;
    for (const auto& [x, y] : points) xs.push_back(x);
    const double centre = mean(xs);
    double squares = 0;
    for (const double x : xs) squares += (x - centre) * (x - centre);
    if (squares == 0) return Value::missing("a slope: all points have one x");
    double low = 0, mid = 0, high = 0;
    for (const auto& [x, y] : points) {
      const double weight = (x - centre) / squares;
      low += weight * (weight > 0 ? y.low : y.high);
      mid += weight * y.mid;
      high += weight * (weight > 0 ? y.high : y.low);
    }
    return Value::interval(low, mid, high, "slope");
  }

  /// An axis that one of two points lacks, such as the order of pages where there are none, is no
  /// difference between them.
  [[nodiscard]] static bool agree(const std::map<std::string, std::string>& a,
                                  const std::map<std::string, std::string>& b) {
    return std::ranges::all_of(a, [&](const auto& axis) {
      const auto other = b.find(axis.first);
      return other == b.end() || other->second == axis.second;
    });
  }

  [[nodiscard]] Value ratio() const {
    const std::string& axis = call_.operands.at(1).word;
    struct Point {
      std::map<std::string, std::string> others;
      Value value;
    };
    std::array<std::vector<Point>, 2> sides;
    for (const Row* row : rows_) {
      const Value at = row->value(axis);
      if (at.kind == Value::Kind::missing) continue;
      for (const std::size_t side : {0U, 1U}) {
        const Value wanted = argument(2 + side, *row);
        const bool is_side =
            at.kind == Value::Kind::text ? at.text == wanted.text : at.mid == wanted.mid;
        Value value = argument(0, *row);
        if (!is_side || value.kind != Value::Kind::number) continue;
        auto others = row->axes;
        others.erase(axis);
        sides[side].push_back({std::move(others), std::move(value)});
      }
    }
    std::vector<Value> ratios;
    for (const auto& [others_a, a] : sides[0]) {
      for (const auto& [others_b, b] : sides[1]) {
        if (!agree(others_a, others_b)) continue;
        Value quotient = Value::interval(a.low / b.high, a.mid / b.mid, a.high / b.low, "ratio");
        if (quotient.kind == Value::Kind::number) ratios.push_back(std::move(quotient));
      }
    }
    return statistic_of(ratios, geomean);
  }

  /// `sign` -1: of the largest.
  [[nodiscard]] Value at_extreme(double sign) const {
    std::vector<std::pair<Value, Value>> candidates;  // y, value of the name
    for (const Row* row : rows_) {
      Value y = argument(0, *row), name = argument(1, *row);
      if (y.kind != Value::Kind::number || name.kind == Value::Kind::missing) continue;
      if (sign < 0) y = Value::interval(-y.high, -y.mid, -y.low, "-");
      candidates.emplace_back(std::move(y), std::move(name));
    }
    if (candidates.empty()) return nothing();
    const auto best =
        std::ranges::min_element(candidates, {}, [](const auto& c) { return c.first.mid; });
    Value result = best->second;
    for (const auto& [y, name] : candidates) {
      if (y.low > best->first.high) continue;
      result.low = std::min(result.low, name.low);
      result.high = std::max(result.high, name.high);
      result.is_unsure = result.is_unsure || name.text != result.text;
    }
    return result;
  }

  const Expression& call_;
  double tolerance_;
  std::vector<const Row*> rows_;
};

}  // namespace

std::optional<Value> aggregate(const Expression& call, const std::vector<Row>& rows,
                               double tolerance) {
  const auto& functions = expression_functions();
  const auto function = std::ranges::find(functions, call.word, &ExpressionFunction::name);
  if (function == functions.end() || !function->is_aggregate) return std::nullopt;
  return Aggregate(call, rows, tolerance).value();
}

}  // namespace attest
