#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "experiments/study/group_timer.hpp"
#include "experiments/study/language/spec.hpp"

namespace attest {

/// What one writer did.
struct StudyOutcome {
  std::size_t points = 0;   ///< of the whole study, baselines and skipped ones not among them
  std::size_t timed = 0;    ///< contenders that got a record here, of which on executors nothing
                            ///< was timed but modelled
  std::size_t skipped = 0;  ///< by kernel, constraint or sampling, recorded here
  std::size_t over_budget = 0;
  std::vector<std::string> refused;  ///< a line each
  std::vector<std::string> notes;    ///< what a user should know: no counters, a shared GPU
  Spent spent;
  double wall_s = 0;
  bool is_interrupted = false;
  bool is_complete = false;     ///< every point of the study has a record, whoever wrote it
  std::vector<Record> answers;  ///< to the expectations, when complete

  /// What else but kernels took time, over their time; NaN when nothing was timed.
  [[nodiscard]] double overhead() const;
};

/// The last record of a writer: counts, and where the time went.
[[nodiscard]] Record summary_record(const StudySpec& spec, const StudyOutcome& outcome,
                                    const Provenance& provenance);

}  // namespace attest
