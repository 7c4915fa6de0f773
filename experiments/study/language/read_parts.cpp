#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/quantity.hpp"
#include "core/base/text.hpp"
#include "experiments/study/language/kernel_choice.hpp"
#include "experiments/study/language/read_axes.hpp"
#include "experiments/study/language/schema.hpp"
#include "experiments/study/language/study_names.hpp"

namespace attest {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// `NAME`, `NAME with PLAN`, either followed by `as OTHER`.
std::optional<Baseline> baseline_from(const YamlNode& node, std::vector<StudyError>& errors) {
  const auto fail = [&](std::string sentence) {
    errors.push_back({node.place, std::move(sentence)});
    return std::nullopt;
  };
  std::string_view text = node.text;
  Baseline baseline;
  baseline.place = node.place;
  if (const auto as = text.rfind(" as "); as != text.npos) {
    baseline.name = text.substr(as + 4);
    text = text.substr(0, as);
  }
  const auto with = text.find(" with ");
  baseline.kernel = text.substr(0, with);
  if (baseline.name.empty()) baseline.name = baseline.kernel;
  const auto known = study_kernel_names();
  if (std::ranges::find(known, baseline.kernel) == known.end()) {
    return fail(why_no_study_kernel(baseline.kernel));
  }
  if (!is_word(baseline.name)) {
    return fail(fmt::format("a baseline cannot be called '{}'; allowed: letters, digits and _",
                            printable(baseline.name)));
  }
  try {
    if (with != text.npos) baseline.plan = plan_from_string(text.substr(with + 6));
  } catch (const InvalidInput& error) {
    return fail(error.what());
  }
  baseline.may_be_absent = is_peer(baseline.kernel);
  return baseline;
}

/// What a plot shows besides times and a study does not ask for; nullptr: nothing. Without a GPU
/// models say all that a roofline needs.
const char* missing_measurement(const Plot& plot, const StudySpec& spec) {
  const auto has = [](const std::vector<std::string>& names, std::string_view begin) {
    return std::ranges::any_of(names,
                               [&](const std::string& name) { return name.starts_with(begin); });
  };
  if (plot.kind == "pareto" && !has(spec.metrics, "error.")) return "metrics: [error.rmse]";
  const bool may_be_timed = spec.executor.value_or(Executor::gpu) == Executor::gpu;
  if (plot.kind != "roofline" || !may_be_timed) return nullptr;
  if (!has(spec.metrics, "model")) return "metrics: [model]";
  return has(spec.counters, "dram") ? nullptr : "counters: [dram]";
}

}  // namespace

std::vector<const YamlNode*> items_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::scalar) return {&node};
  std::vector<const YamlNode*> items;
  for (const YamlNode& item : node.items) items.push_back(&item);
  return items;
}

double number_of(const YamlNode& node) {
  const auto quantity = quantity_from(node.text);
  return quantity ? quantity->value : 0;
}

std::vector<Baseline> read_baselines(const YamlNode& node, std::vector<StudyError>& errors) {
  std::vector<Baseline> baselines;
  for (const YamlNode* item : items_of(node)) {
    auto baseline = baseline_from(*item, errors);
    if (!baseline) continue;
    if (std::ranges::find(baselines, baseline->name, &Baseline::name) != baselines.end()) {
      errors.push_back({item->place, fmt::format("two baselines are called {}; write 'as NAME' "
                                                 "behind one",
                                                 baseline->name)});
      continue;
    }
    baselines.push_back(*std::move(baseline));
  }
  return baselines;
}

Sampling read_sampling(const YamlNode& node, bool has_time_budget,
                       std::vector<StudyError>& errors) {
  Sampling sampling;
  if (node.kind == YamlNode::Kind::scalar) return sampling;
  const auto fail = [&](const YamlNode& where, std::string sentence) {
    errors.push_back({where.place, std::move(sentence)});
  };
  const std::string& method = value_of_key(node, "method")->text;
  const auto number = [&](std::string_view key, std::string_view owner) -> std::optional<double> {
    const YamlNode* value = value_of_key(node, key);
    if (value == nullptr) return std::nullopt;
    if (method != owner) {
      fail(*value,
           fmt::format("'sampling.{}' belongs to method {}, not to {}", key, owner, method));
    }
    return number_of(*value);
  };
  const auto points = number("points", "random"), keep = number("keep", "halving");
  sampling.seed = static_cast<std::uint64_t>(number("seed", "random").value_or(0));
  sampling.points = static_cast<std::int64_t>(points.value_or(0));
  sampling.keep = keep.value_or(sampling.keep);
  if (method == "random") {
    sampling.method = Sampling::Method::random;
    if (!points) fail(node, "'sampling.points' is missing: how many are drawn");
  } else if (method == "halving") {
    sampling.method = Sampling::Method::halving;
    if (sampling.keep <= 0 || sampling.keep >= 1) {
      fail(*value_of_key(node, "keep"), "'sampling.keep' is not between 0% and 100%");
    }
    if (!has_time_budget) {
      fail(node, "'sampling.method' halving divides the time_budget, which is missing");
    }
  }
  return sampling;
}

std::vector<Expectation> read_expectations(const YamlNode& node,
                                           const std::vector<Baseline>& baselines,
                                           const StudyAxes& axes, std::vector<StudyError>& errors) {
  const Vocabulary vocabulary = result_vocabulary(baselines);
  std::vector<Expectation> expectations;
  for (const YamlNode* item : items_of(node)) {
    const auto text = [&](std::string_view key) {
      const YamlNode* value = value_of_key(*item, key);
      return value == nullptr ? "" : value->text;
    };
    const YamlNode* tolerance = value_of_key(*item, "tolerance");
    auto that =
        read_expression(*value_of_key(*item, "that"), vocabulary, Scope::results, true, errors);
    if (!that) continue;
    for (ExpressionError& error : axes.complaints(*that->expression)) {
      const Place at{that->place.line, that->place.column + static_cast<int>(error.at)};
      errors.push_back({at, std::move(error.sentence)});
    }
    expectations.push_back({.that = *std::move(that),
                            .because = text("because"),
                            .claim = text("claim"),
                            .tolerance = tolerance == nullptr ? 0 : number_of(*tolerance)});
  }
  return expectations;
}

std::vector<Plot> read_plots(const YamlNode& node, const StudySpec& spec, const StudyAxes& axes,
                             std::vector<StudyError>& errors) {
  const Vocabulary vocabulary = result_vocabulary(spec.baselines), identity = identity_vocabulary();
  std::vector<Plot> plots;
  for (const YamlNode* item : items_of(node)) {
    Plot plot;
    const auto read = [&](std::string_view key, std::string& text, bool is_name) {
      const YamlNode* value = value_of_key(*item, key);
      if (value == nullptr) return;
      text = value->text;
      if (!is_name) return;
      const std::string what = fmt::format("'plots.{}' is '{}', which", key, printable(text));
      if (vocabulary.find(text) == nullptr) {
        errors.push_back({value->place, fmt::format("{} is no axis and no measurement; {}", what,
                                                    near_or_all(text, vocabulary.all()))});
      } else if (identity.find(text) != nullptr && text != "executor" && !axes.has(text)) {
        errors.push_back({value->place, fmt::format("{} is no axis of this study; its axes: {}",
                                                    what, fmt::join(axes.names(), ", "))});
      }
    };
    read("kind", plot.kind, false);
    read("title", plot.title, false);
    read("x", plot.x, true);
    read("y", plot.y, true);
    read("value", plot.value, true);
    read("color", plot.color, true);
    const auto require = [&](std::string_view key, const std::string& text) {
      if (!text.empty()) return;
      errors.push_back({item->place, fmt::format("a plot of kind {} needs '{}'", plot.kind, key)});
    };
    if (plot.kind == "heat_map" || plot.kind == "lines" || plot.kind == "bars") {
      require("x", plot.x);
      require("y", plot.y);
    }
    if (plot.kind == "heat_map") require("value", plot.value);
    if (const char* const missing = missing_measurement(plot, spec)) {
      errors.push_back(
          {item->place, fmt::format("a plot of kind {} needs '{}'", plot.kind, missing)});
    }
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace attest
