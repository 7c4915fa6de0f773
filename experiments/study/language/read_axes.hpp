#pragma once

#include <optional>
#include <vector>

#include "experiments/study/language/spec.hpp"
#include "experiments/study/language/vocabulary.hpp"
#include "experiments/study/language/yaml_tree.hpp"

namespace attest {

// Values of the keys `problem`, `plan` and `inputs`, whose shapes were checked.

/// One grid for a map, several for a list of maps. Values are put into one form: `064` is `64`, the
/// second name of a choice is `2`'s.
[[nodiscard]] std::vector<Grid> read_problem(const YamlNode& node, std::vector<StudyError>& errors);
[[nodiscard]] std::vector<Grid> read_plan(const YamlNode& node, std::vector<StudyError>& errors);
[[nodiscard]] Grid read_inputs(const YamlNode& node, std::vector<StudyError>& errors);

/// An expression at its place in the file, parsed and checked; nothing after adding its errors.
[[nodiscard]] std::optional<Condition> read_expression(const YamlNode& node,
                                                       const Vocabulary& vocabulary, Scope scope,
                                                       bool wants_truth,
                                                       std::vector<StudyError>& errors);

}  // namespace attest
