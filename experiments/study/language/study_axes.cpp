#include "experiments/study/language/study_axes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/study/language/kernel_choice.hpp"

namespace attest {
namespace {

bool is_literal(const Expression& e) {
  return e.kind == Expression::Kind::number || e.kind == Expression::Kind::text;
}

bool is_value(const AxisValue& value, const Expression& literal) {
  const auto* text = std::get_if<std::string>(&value);
  if (literal.kind == Expression::Kind::text) return text != nullptr && *text == literal.word;
  return text == nullptr && std::get<double>(value) == literal.number.value;
}

std::string text_of(const Expression& literal) {
  return literal.kind == Expression::Kind::text ? literal.word
                                                : fmt::format("{}", literal.number.value);
}

}  // namespace

StudyAxes::StudyAxes(const StudySpec& spec, bool is_whole)
    : is_whole_(is_whole), has_every_plan_(spec.every_plan) {
  std::vector<AxisValue> kernels, seeds;
  for (const std::string& glob : spec.kernels) {
    for (std::string& name : kernels_matching(glob)) kernels.emplace_back(std::move(name));
  }
  for (const std::uint64_t seed : spec.seeds) seeds.emplace_back(static_cast<double>(seed));
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
    for (const VariedAxis& varied : grid) {
      auto& values =
          values_.try_emplace(varied.axis->full_name(), std::vector<AxisValue>{}).first->second;
      const bool is_everywhere = std::ranges::all_of(grids, [&](const Grid& other) {
        return std::ranges::find(other, varied.axis, &VariedAxis::axis) != other.end();
      });
      if (!is_everywhere || varied.values.empty()) values.reset();
      for (const WrittenValue& written : varied.values) {
        const std::optional<AxisValue> value = stated(written);
        if (!value) values.reset();
        if (!values) break;
        if (std::ranges::find(*values, *value) == values->end()) values->push_back(*value);
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
  const std::vector<AxisValue>& values = *axis->second;
  if (std::ranges::any_of(values, [&](const AxisValue& one) { return is_value(one, value); })) {
    return;
  }
  std::vector<std::string> texts;
  for (const AxisValue& one : values) texts.push_back(attest::text_of(one));
  found.push_back({value.at, fmt::format("{} is never {} in this study; its values: {}", name.word,
                                         text_of(value), fmt::join(texts, ", "))});
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
