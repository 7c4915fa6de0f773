#include "experiments/study/language/study_axes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/quantity.hpp"
#include "experiments/study/language/kernel_choice.hpp"
#include "experiments/study/language/problem_axis.hpp"

namespace attest {
namespace {

bool is_literal(const Expression& e) {
  return e.kind == Expression::Kind::number || e.kind == Expression::Kind::text;
}

bool is_value(const std::string& text, const Expression& literal) {
  if (literal.kind == Expression::Kind::text) return text == literal.word;
  const auto number = quantity_from(text);
  return number && number->value == literal.number.value;
}

/// Of a number of the problem: an expression over others.
bool is_computed(const std::string& axis, const std::string& value) {
  constexpr std::string_view prefix = "problem.";
  if (!axis.starts_with(prefix) || quantity_from(value)) return false;
  const ProblemAxis* of_problem = find_problem_axis(axis.substr(prefix.size()));
  return of_problem != nullptr && !of_problem->is_choice();
}

std::string text_of(const Expression& literal) {
  return literal.kind == Expression::Kind::text ? literal.word
                                                : fmt::format("{}", literal.number.value);
}

}  // namespace

StudyAxes::StudyAxes(const StudySpec& spec, bool is_whole)
    : is_whole_(is_whole), has_every_plan_(spec.every_plan) {
  std::vector<std::string> kernels, seeds;
  for (const std::string& glob : spec.kernels) {
    for (std::string& name : kernels_matching(glob)) kernels.push_back(std::move(name));
  }
  for (const std::uint64_t seed : spec.seeds) seeds.push_back(std::to_string(seed));
  if (kernels.empty()) {
    values_["kernel"] = std::nullopt;
  } else {
    values_["kernel"] = std::move(kernels);
  }
  values_["inputs.seed"] = std::move(seeds);
  add(spec.problem);
  if (!spec.every_plan) add(spec.plan);
  add({spec.layout});
  add({spec.inputs});
}

void StudyAxes::add(const std::vector<Grid>& grids) {
  for (const Grid& grid : grids) {
    for (const Axis& axis : grid) {
      auto& values = values_.try_emplace(axis.name, std::vector<std::string>{}).first->second;
      const bool is_everywhere = std::ranges::all_of(grids, [&](const Grid& other) {
        return std::ranges::find(other, axis.name, &Axis::name) != other.end();
      });
      if (!is_everywhere || axis.values.empty()) values.reset();
      for (const std::string& value : axis.values) {
        if (value == "all" || is_computed(axis.name, value)) values.reset();
        if (values && std::ranges::find(*values, value) == values->end()) values->push_back(value);
      }
    }
  }
}

bool StudyAxes::has(std::string_view name) const {
  return !is_whole_ || values_.contains(name) || (has_every_plan_ && name.starts_with("plan."));
}

std::vector<std::string> StudyAxes::names() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : values_) names.push_back(name);
  if (has_every_plan_) names.emplace_back("plan.FIELD");
  return names;
}

std::vector<ExpressionError> StudyAxes::complaints(const Expression& expression) const {
  std::vector<ExpressionError> found;
  if (is_whole_) add_complaints(expression, found);
  return found;
}

void StudyAxes::require_value(const Expression& name, const Expression& value,
                              std::vector<ExpressionError>& found) const {
  if (name.kind != Expression::Kind::name || !is_literal(value)) return;
  const auto axis = values_.find(name.word);
  if (axis == values_.end() || !axis->second) return;
  const auto& values = *axis->second;
  if (std::ranges::any_of(values, [&](const auto& text) { return is_value(text, value); })) return;
  found.push_back({value.at, fmt::format("{} is never {} in this study; its values: {}", name.word,
                                         text_of(value), fmt::join(values, ", "))});
}

void StudyAxes::add_complaints(const Expression& e, std::vector<ExpressionError>& found) const {
  const bool is_comparison =
      e.kind == Expression::Kind::binary && (e.word == "==" || e.word == "!=");
  if (is_comparison) {
    require_value(e.operands[0], e.operands[1], found);
    require_value(e.operands[1], e.operands[0], found);
  }
  if (e.kind == Expression::Kind::call && e.word == "ratio") {
    const Expression& axis = e.operands[1];
    if (!has(axis.word)) {
      found.push_back({axis.at, fmt::format("'{}' is no axis of this study; its axes: {}",
                                            axis.word, fmt::join(names(), ", "))});
    }
    for (const std::size_t side : {2U, 3U}) require_value(axis, e.operands[side], found);
  }
  for (const Expression& operand : e.operands) add_complaints(operand, found);
  for (const Expression& condition : e.where) add_complaints(condition, found);
}

}  // namespace attest
