#include "experiments/study/language/study_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/study/language/axis.hpp"
#include "experiments/study/language/error_metrics.hpp"
#include "experiments/study/language/kernel_choice.hpp"
#include "experiments/study/language/model_values.hpp"

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

}  // namespace

Vocabulary identity_vocabulary() {
  Vocabulary vocabulary;
  auto& names = vocabulary.names;
  names["kernel"] = text_type(study_kernel_names());
  names["executor"] = text_type({"gpu", "simt", "cpu"});
  for (const Axis& axis : all_axes()) {
    names[axis.full_name()] = axis.is_choice() ? text_type(axis.names()) : ValueType{};
  }
  return vocabulary;
}

Value identity_value(std::string_view name, Executor executor, const Case& subject) {
  if (name == "kernel") return Value::of_text(subject.kernel);
  if (name == "executor") return Value::of_text(std::string(name_of(executor)));
  const Axis* axis = find_axis(name);
  const std::optional<AxisValue> value = axis == nullptr ? std::nullopt : axis->get(subject);
  if (!value) return Value::missing(std::string(name));
  const auto* text = std::get_if<std::string>(&*value);
  return text != nullptr ? Value::of_text(*text) : Value::number(std::get<double>(*value));
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
  for (const Axis* axis : keys_of(Axis::Group::problem)) {
    if (!axis->is_choice()) vocabulary.names[axis->name] = {};
  }
  return vocabulary;
}

}  // namespace attest
