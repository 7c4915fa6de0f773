#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "experiments/study/job.hpp"
#include "experiments/study/language/parse_study.hpp"

namespace attest {

/// Functions of this program that studies call.
[[nodiscard]] StudyProgram study_program();
/// Bytes of a study's file, or of the shipped study of that name. Throws InvalidInput where there
/// is neither.
[[nodiscard]] std::string study_text(const std::string& file);
/// Study of a text; nothing after a line on stderr for everything that is wrong: `FILE:LINE:COLUMN:
/// SENTENCE`.
[[nodiscard]] std::optional<StudySpec> study_or_complaints(const std::string& text,
                                                           const std::string& file);

/// Adds what runs nothing: check, schema, keys.
void add_study_check_commands(CLI::App& study, Action& action);

}  // namespace attest
