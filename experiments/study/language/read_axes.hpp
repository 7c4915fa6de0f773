#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/study/language/parse_study.hpp"
#include "experiments/study/language/study_axes.hpp"
#include "experiments/study/language/vocabulary.hpp"
#include "experiments/study/language/yaml_tree.hpp"

namespace attest {
/// Values of a key that has axes, `problem`, `plan`, `layout` or `inputs`, whose shape was checked:
/// one grid for a map, several for a list of maps.
[[nodiscard]] std::vector<Grid> read_grids(Axis::Group group, const YamlNode& node,
                                           std::vector<StudyError>& errors);

/// An expression at its place in the file, parsed and checked; nothing after adding its errors.
[[nodiscard]] std::optional<Condition> read_expression(const YamlNode& node,
                                                       const Vocabulary& vocabulary, Scope scope,
                                                       bool wants_truth,
                                                       std::vector<StudyError>& errors);

// Values of keys that have parts, whose shapes were checked. What is wrong is left out.

/// A value, or each of a list.
[[nodiscard]] std::vector<const YamlNode*> items_of(const YamlNode& node);
/// Number of a value whose form was checked; times in milliseconds.
[[nodiscard]] double number_of(const YamlNode& node);

/// Baselines of the key `baselines`, each once.
[[nodiscard]] std::vector<Baseline> read_baselines(const YamlNode& node,
                                                   std::vector<StudyError>& errors);
/// Sampling of its key; halving needs a time budget.
[[nodiscard]] Sampling read_sampling(const YamlNode& node, bool has_time_budget,
                                     std::vector<StudyError>& errors);
/// Expectations of the key `expect`, each checked against axes and baselines.
[[nodiscard]] std::vector<Expectation> read_expectations(const YamlNode& node,
                                                         const std::vector<Baseline>& baselines,
                                                         const StudyAxes& axes,
                                                         std::vector<StudyError>& errors);
/// `spec`: as far as it is read; plots need some of its measurements.
[[nodiscard]] std::vector<Plot> read_plots(const YamlNode& node, const StudySpec& spec,
                                           const StudyAxes& axes, std::vector<StudyError>& errors);

}  // namespace attest
