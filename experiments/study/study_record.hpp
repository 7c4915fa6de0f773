#pragma once

#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "experiments/study/group_timer.hpp"
#include "experiments/study/language/point.hpp"

namespace attest {

/// Records of a study; README.md lists labels and measurements.

/// A kernel with its labels, nothing measured, verdict `passed`.
[[nodiscard]] Record record_of(const StudySpec& spec, const TimedKernel& timed_kernel,
                               const Provenance& provenance);
/// The record of a kernel that was refused: verdict `failed` and the reason.
[[nodiscard]] Record refused_record(const StudySpec& spec, const TimedKernel& timed_kernel,
                                    const Provenance& provenance, const std::string& reason);
/// A point that was not reached before the time budget ended.
[[nodiscard]] Record over_budget_record(const StudySpec& spec, const TimedKernel& timed_kernel,
                                        const Provenance& provenance);
/// Record of what the file asks for and nobody runs: verdict `unsupported`, the reason, and no
/// case.
[[nodiscard]] Record skipped_record(const StudySpec& spec, const Skipped& skipped,
                                    const Provenance& provenance);
/// The id of what was skipped, so that a resumed study does not say it twice.
[[nodiscard]] std::string id_of(const Skipped& skipped);

/// Adds the values of models to a record, as `model.NAME`.
void add_model_values(Record& record, const std::vector<Measurement>& values);

/// One more of the comma-separated label `flags`.
void add_flag(Record& record, const std::string& flag);

/// A baseline that was timed in the same rounds.
struct BaselineTimes {
  std::string name;
  const std::vector<double>* times_ms;
};
/// Adds time, rate, ratios, clocks, counters and errors.
void add_measurements(Record& record, const Measured& measured,
                      const std::vector<BaselineTimes>& baselines);

/// The metrics that the study asks for and that a record lacks, which gets them as the label
/// `not_measured`. Those of a time are not missed where nothing is timed: that is said once, for
/// all points.
std::vector<std::string> note_missing_metrics(Record& record, const StudySpec& spec, bool is_timed);

}  // namespace attest
