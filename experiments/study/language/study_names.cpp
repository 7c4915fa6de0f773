#include "experiments/study/language/study_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/inputs/input_family.hpp"
#include "experiments/study/language/error_metrics.hpp"
#include "experiments/study/language/kernel_choice.hpp"
#include "experiments/study/language/layout_axis.hpp"
#include "experiments/study/language/model_values.hpp"
#include "experiments/study/language/problem_axis.hpp"

namespace attest {
namespace {

ValueType text_type(std::vector<std::string> texts) {
  return {.kind = ValueType::Kind::text, .texts = std::move(texts)};
}

std::vector<std::string> measured_names() {
  std::vector<std::string> names{"rate", "bandwidth", "rounds", "sm_clock", "power", "temperature"};
  for (std::string& name : error_names()) names.push_back(std::move(name));
  return names;
}

ValueType type_of(const ProblemAxis& axis) {
  return axis.is_choice() ? text_type(choices_of(axis)) : ValueType{};
}

}  // namespace

Vocabulary identity_vocabulary() {
  Vocabulary vocabulary;
  auto& names = vocabulary.names;
  names["kernel"] = text_type(study_kernel_names());
  names["executor"] = text_type({"gpu", "simt", "cpu"});
  for (const ProblemAxis& axis : problem_axes()) {
    names[fmt::format("problem.{}", axis.name)] = type_of(axis);
  }
  for (const PlanField& field : plan_fields()) {
    names[fmt::format("plan.{}", field.name)] =
        field.is_choice() ? text_type({field.values.begin(), field.values.end()}) : ValueType{};
  }
  for (const LayoutAxis& axis : layout_axes()) {
    names[fmt::format("layout.{}", axis.name)] =
        axis.is_choice() ? text_type({axis.choices.begin(), axis.choices.end()}) : ValueType{};
  }
  std::vector<std::string> families;
  for (const InputFamily& family : all_input_families()) families.push_back(family.name);
  names["inputs.family"] = text_type(std::move(families));
  names["inputs.magnitude"] = names["inputs.seed"] = {};
  return vocabulary;
}

Value identity_value(std::string_view name, Executor executor, const Case& subject) {
  if (name == "kernel") return Value::of_text(subject.kernel);
  if (name == "executor") return Value::of_text(std::string(name_of(executor)));
  if (name == "inputs.family") return Value::of_text(subject.inputs.family);
  if (name == "inputs.magnitude") return Value::number(subject.inputs.magnitude);
  if (name == "inputs.seed") return Value::number(static_cast<double>(subject.inputs.seed));
  if (name.starts_with("problem.")) {
    const ProblemAxis* axis = find_problem_axis(name.substr(8));
    if (axis == nullptr) return Value::missing(std::string(name));
    std::string text = text_of(*axis, subject.problem);
    if (axis->is_choice()) return Value::of_text(std::move(text));
    return text.empty() ? Value::missing(std::string(name))
                        : Value::number(number_of(*axis, subject.problem));
  }
  if (name.starts_with("layout.")) {
    const LayoutAxis* axis = find_layout_axis(name.substr(7));
    if (axis == nullptr) return Value::missing(std::string(name));
    const Paging& paging = subject.layouts.paging;
    return axis->is_choice() ? Value::of_text(text_of(*axis, paging))
                             : Value::number(axis->get(paging));
  }
  for (const PlanField& field : plan_fields()) {
    if (name != fmt::format("plan.{}", field.name)) continue;
    const std::int64_t value = subject.plan.*field.member;
    if (name == "plan.key_splits" && value == 0) return Value::number(1);
    if (value == 0) break;
    if (!field.is_choice()) return Value::number(static_cast<double>(value));
    return Value::of_text(std::string(field.values[static_cast<std::size_t>(value - 1)]));
  }
  return Value::missing(std::string(name));
}

Vocabulary constraint_vocabulary() {
  Vocabulary vocabulary = identity_vocabulary();
  for (const ModelValueName& value : model_value_names()) {
    vocabulary.names[std::string(value.name)] = {.dimension = value.dimension};
  }
  for (std::string& name : measured_names()) vocabulary.later.push_back(std::move(name));
  for (const char* begin : {"time", "speed_over_", "counter.", "model."}) {
    vocabulary.later.emplace_back(begin);
  }
  return vocabulary;
}

Vocabulary result_vocabulary(const std::vector<Baseline>& baselines) {
  Vocabulary vocabulary = identity_vocabulary();
  auto& names = vocabulary.names;
  names["time"] = {.dimension = Dimension::time};
  names["hbm_bytes"] = {.dimension = Dimension::bytes};
  for (const std::string& name : measured_names()) names[name] = {};
  for (const Baseline& baseline : baselines) names["speed_over_" + baseline.name] = {};
  vocabulary.open = {"counter.", "model."};
  return vocabulary;
}

Vocabulary problem_vocabulary() {
  Vocabulary vocabulary;
  for (const ProblemAxis& axis : problem_axes()) {
    if (!axis.is_choice()) vocabulary.names[std::string(axis.name)] = {};
  }
  return vocabulary;
}

}  // namespace attest
