#include "experiments/study/language/vocabulary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/near_names.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

using Kind = ValueType::Kind;

std::string_view name_of(Kind kind) {
  return kind == Kind::number ? "a number" : kind == Kind::text ? "a text" : "true or false";
}

const ExpressionFunction* find_function(std::string_view name) {
  const auto found = std::ranges::find(expression_functions(), name, &ExpressionFunction::name);
  return found == expression_functions().end() ? nullptr : &*found;
}

class Checker {
 public:
  Checker(const Vocabulary& vocabulary, Scope scope)
      : vocabulary_(vocabulary), needs_aggregate_(scope == Scope::results), scope_(scope) {}

  ValueType typed(Expression& e) {
    switch (e.kind) {
      case Expression::Kind::number:
        return {.dimension = e.number.dimension};
      case Expression::Kind::text:
        return {.kind = Kind::text};
      case Expression::Kind::name:
        return type_of_name(e);
      case Expression::Kind::unary:
        return require(e.operands[0], e.word == "not" ? Kind::truth : Kind::number);
      case Expression::Kind::binary:
        return binary(e);
      case Expression::Kind::call:
        return call(e);
    }
    return {};
  }

  ValueType require(Expression& e, Kind kind) {
    const std::size_t before = errors.size();
    const ValueType type = typed(e);
    if (errors.size() == before && type.kind != kind) {
      fail(e.at, fmt::format("{} is due here, not {}", name_of(kind), name_of(type.kind)));
    }
    return {.kind = kind, .dimension = type.dimension};
  }

  std::vector<ExpressionError> errors;

 private:
  void fail(std::size_t at, std::string sentence) { errors.push_back({at, std::move(sentence)}); }

  ValueType type_of_name(const Expression& e) {
    const ValueType* type = vocabulary_.find(e.word);
    if (type == nullptr) {
      const bool is_later = std::ranges::any_of(
          vocabulary_.later, [&](const std::string& begin) { return e.word.starts_with(begin); });
      fail(e.at, is_later ? fmt::format("'{}' is known only after a point has run; allowed here: "
                                        "its axes, and models such as flops and shared_bytes",
                                        printable(e.word))
                          : fmt::format("name '{}' is unknown; {}", printable(e.word),
                                        near_or_all(e.word, vocabulary_.all())));
      return {};
    }
    if (needs_aggregate_) {
      fail(e.at, fmt::format("'{}' has a value at every point; write which one: median({}), min({} "
                             "where ...), all({} > ...)",
                             e.word, e.word, e.word, e.word));
    }
    return *type;
  }

  /// A word that is no name, beside a name whose values are texts, is one of its values.
  void resolve_text(Expression& word, const Expression& beside) {
    const bool is_extreme = beside.word == "at_min" || beside.word == "at_max";
    if (beside.kind == Expression::Kind::call && is_extreme && beside.operands.size() == 2) {
      return resolve_text(word, beside.operands[1]);
    }
    if (beside.kind != Expression::Kind::name) return;
    const ValueType* type = vocabulary_.find(beside.word);
    if (type == nullptr || type->kind != Kind::text) return;
    if (word.kind == Expression::Kind::name && vocabulary_.find(word.word) == nullptr) {
      word.kind = Expression::Kind::text;
    }
    if (word.kind != Expression::Kind::text || type->texts.empty()) return;
    if (std::ranges::find(type->texts, word.word) == type->texts.end()) {
      fail(word.at, fmt::format("{} is never '{}'; {}", beside.word, printable(word.word),
                                near_or_all(word.word, type->texts)));
    }
  }

  ValueType binary(Expression& e) {
    if (e.word == "and" || e.word == "or") {
      require(e.operands[0], Kind::truth);
      return require(e.operands[1], Kind::truth);
    }
    if (e.word == "==" || e.word == "!=") {
      const std::size_t before = errors.size();
      resolve_text(e.operands[1], e.operands[0]);
      resolve_text(e.operands[0], e.operands[1]);
      const ValueType left = typed(e.operands[0]), right = typed(e.operands[1]);
      if (errors.size() == before && left.kind != right.kind) {
        fail(e.at, fmt::format("'{}' compares {} with {}", e.word, name_of(left.kind),
                               name_of(right.kind)));
      }
      require_like(e, left, right);
      return {.kind = Kind::truth};
    }
    const ValueType left = require(e.operands[0], Kind::number);
    const ValueType right = require(e.operands[1], Kind::number);
    const bool is_scaled = right.dimension == Dimension::number;
    if (e.word == "*") return {.dimension = is_scaled ? left.dimension : right.dimension};
    if (e.word == "/") return {.dimension = is_scaled ? left.dimension : Dimension::number};
    if (e.word == "^") return {};
    require_like(e, left, right);
    return {.kind = e.word == "+" || e.word == "-" ? Kind::number : Kind::truth,
            .dimension = left.dimension};
  }

  void require_like(const Expression& e, const ValueType& left, const ValueType& right) {
    if (left.kind != Kind::number || right.kind != Kind::number) return;
    if (left.dimension == right.dimension || !errors.empty()) return;
    fail(e.at, fmt::format("'{}' stands between {} and {}; units are {}", e.word,
                           attest::name_of(left.dimension), attest::name_of(right.dimension),
                           unit_names()));
  }

  ValueType call(Expression& e) {
    const ExpressionFunction* function = find_function(e.word);
    if (function == nullptr || (function->is_aggregate && scope_ == Scope::values)) {
      std::vector<std::string> names;
      for (const ExpressionFunction& f : expression_functions()) {
        if (!f.is_aggregate || scope_ == Scope::results) names.emplace_back(f.name);
      }
      fail(e.at, fmt::format("function '{}' is unknown; {}", printable(e.word),
                             near_or_all(e.word, names)));
      return {};
    }
    if (e.operands.size() != function->arguments) {
      fail(e.at, fmt::format("{} takes {} arguments, not {}: {}", e.word, function->arguments,
                             e.operands.size(), function->summary));
      return {};
    }
    if (!function->is_aggregate) {
      if (!e.where.empty()) fail(e.where[0].at, fmt::format("{} takes no condition", e.word));
      const ValueType type = require(e.operands[0], Kind::number);
      const bool keeps = e.word == "abs" || e.word == "ceil" || e.word == "floor";
      return {.dimension = keeps ? type.dimension : Dimension::number};
    }
    return aggregate(e);
  }

  ValueType aggregate(Expression& e) {
    if (!needs_aggregate_) {
      fail(e.at, fmt::format("{} stands inside another function over points", e.word));
      return {};
    }
    needs_aggregate_ = false;
    for (Expression& condition : e.where) require(condition, Kind::truth);
    ValueType result;
    if (e.word == "all" || e.word == "any") {
      result = require(e.operands[0], Kind::truth);
    } else if (!e.operands.empty()) {
      result = require(e.operands[0], Kind::number);
    }
    if (e.word == "slope") {
      require(e.operands[1], Kind::number);
      result = {};
    } else if (e.word == "ratio") {
      for (const std::size_t i : {2U, 3U}) resolve_text(e.operands[i], e.operands[1]);
      const std::size_t before = errors.size();
      const Kind kind = typed(e.operands[1]).kind;
      if (errors.size() == before && e.operands[1].kind != Expression::Kind::name) {
        fail(e.operands[1].at, "ratio needs the name of an axis here");
      }
      for (const std::size_t i : {2U, 3U}) require(e.operands[i], kind);
      result = {};
    } else if (e.word == "at_min" || e.word == "at_max") {
      result = typed(e.operands[1]);
    }
    needs_aggregate_ = true;
    return result;
  }

  const Vocabulary& vocabulary_;
  bool needs_aggregate_;  ///< here a name has no single value
  Scope scope_;
};

void collect_names(const Expression& e, std::vector<std::string>& names) {
  if (e.kind == Expression::Kind::name && std::ranges::find(names, e.word) == names.end()) {
    names.push_back(e.word);
  }
  for (const Expression& operand : e.operands) collect_names(operand, names);
  for (const Expression& condition : e.where) collect_names(condition, names);
}

}  // namespace

const ValueType* Vocabulary::find(std::string_view name) const {
  static const ValueType any_number;
  if (const auto found = names.find(name); found != names.end()) return &found->second;
  const bool is_open =
      std::ranges::any_of(open, [&](const std::string& begin) { return name.starts_with(begin); });
  return is_open ? &any_number : nullptr;
}

std::vector<std::string> Vocabulary::all() const {
  std::vector<std::string> all;
  for (const auto& [name, type] : names) all.push_back(name);
  for (const std::string& begin : open) all.push_back(begin + "NAME");
  return all;
}

const std::vector<ExpressionFunction>& expression_functions() {
  static const std::vector<ExpressionFunction> functions{
      {"log", 1, false, "natural logarithm"},
      {"log2", 1, false, "logarithm to base 2"},
      {"sqrt", 1, false, "square root"},
      {"abs", 1, false, "absolute value"},
      {"ceil", 1, false, "rounded up"},
      {"floor", 1, false, "rounded down"},
      {"median", 1, true, "median over points"},
      {"mean", 1, true, "mean over points"},
      {"geomean", 1, true, "geometric mean over points"},
      {"min", 1, true, "smallest"},
      {"max", 1, true, "largest"},
      {"count", 0, true, "number of points"},
      {"all", 1, true, "true at every point"},
      {"any", 1, true, "true at some point"},
      {"slope", 2, true, "slope(y, x): of the line through the points by least squares"},
      {"ratio", 4, true,
       "ratio(y, AXIS, a, b): y where AXIS is a over y where it is b, all other axes equal; the "
       "geometric mean of such pairs"},
      {"at_min", 2, true, "at_min(y, name): value of the name where y is smallest"},
      {"at_max", 2, true, "at_max(y, name): value of the name where y is largest"}};
  return functions;
}

std::vector<ExpressionError> check(Expression& expression, const Vocabulary& vocabulary,
                                   Scope scope, Kind wanted) {
  Checker checker(vocabulary, scope);
  checker.require(expression, wanted);
  return std::move(checker.errors);
}

std::vector<std::string> names_in(const Expression& expression) {
  std::vector<std::string> names;
  collect_names(expression, names);
  return names;
}

}  // namespace attest
