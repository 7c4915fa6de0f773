#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/study/language/point.hpp"

namespace attest {

/// Bytes of a study's file, or of the shipped study of that name. Throws InvalidInput when there is
/// neither.
[[nodiscard]] std::string study_text(const std::string& file);

/// The study; otherwise nothing, after one line on stderr for everything that is wrong with it:
/// `FILE:LINE:COLUMN: SENTENCE`.
[[nodiscard]] std::optional<StudySpec> study_or_complaints(const std::string& text,
                                                           const std::string& file);

/// This machine's GPU in the device table, else the one that is named.
[[nodiscard]] const GpuModel& gpu_model_here(const std::string& device);

/// Name of the GPU that runs a study's kernels here; empty where an executor does.
[[nodiscard]] std::string gpu_that_runs(const StudySpec& spec);

/// The points on this machine. `device`: the GPU whose limits and tuned Plans count where this
/// machine has none.
[[nodiscard]] Expansion expand_here(const StudySpec& spec, const std::string& device);

/// What is skipped, by reason, a line each with the count.
void print_skipped(const Expansion& expansion);

/// A line where a study asks for fewer rounds than make an interval.
void print_few_rounds(const StudySpec& spec);

}  // namespace attest
