#include "experiments/study/study_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/fnv1a.hpp"
#include "core/run/default_plan.hpp"
#include "experiments/timing/rounds.hpp"
#include "gpu/model/cost_model.hpp"

namespace attest {
namespace {

void add_interval(Record& record, const std::string& name, const MedianInterval& interval,
                  const std::string& unit) {
  record.measurements.push_back({name, interval.median, unit});
  record.measurements.push_back({name + "_low", interval.low, unit});
  record.measurements.push_back({name + "_high", interval.high, unit});
}

/// What a GPU does not tell is NaN.
void add_median(Record& record, const std::vector<DeviceState>& states, double DeviceState::*member,
                const char* name, const char* unit) {
  std::vector<double> values;
  for (const DeviceState& state : states) {
    if (std::isfinite(state.*member)) values.push_back(state.*member);
  }
  if (values.empty()) return;
  record.measurements.push_back({name, median_interval(std::move(values)).median, unit});
}

/// Reasons are those at the end of a timing; counters tell, too, what was over by then.
void add_throttle(Record& record, const Measured& measured) {
  if (measured.states.empty()) return;
  std::set<std::string> reasons, read;
  double timings = 0, longest_ms = 0;
  for (const DeviceState& state : measured.states) {
    if (!state.throttle_reasons) continue;
    read.insert("reasons");
    reasons.insert(state.throttle_reasons->begin(), state.throttle_reasons->end());
    timings += state.throttle_reasons->empty() ? 0 : 1;
  }
  for (const auto& [reason, ms] : measured.throttled_ms) {
    read.insert("counters");
    if (ms > 0) reasons.insert(reason);
    longest_ms = std::max(longest_ms, ms);
  }
  record.labels["throttle_read"] =
      read.empty() ? "nothing" : fmt::format("{}", fmt::join(read, ", "));
  if (read.contains("counters")) {
    record.measurements.push_back({"group_throttled_time", longest_ms, "ms"});
  }
  if (reasons.empty()) return;
  const double share = timings / static_cast<double>(measured.states.size());
  record.measurements.push_back({"throttled", share, "1"});
  record.labels["throttle"] = fmt::format("{}", fmt::join(reasons, ", "));
  add_flag(record, "throttled");
}

void add_states(Record& record, const Measured& measured) {
  const std::vector<DeviceState>& states = measured.states;
  add_median(record, states, &DeviceState::sm_clock_mhz, "sm_clock", "MHz");
  add_median(record, states, &DeviceState::power_w, "power", "W");
  add_median(record, states, &DeviceState::temperature_c, "temperature", "C");
  add_throttle(record, measured);
}

/// Where the Plan is from, if it is the one that is taken where none is given.
void add_plan_origin(Record& record, const KernelInfo& kernel, const Case& subject) {
  const std::string& gpu = record.provenance.device;
  if (kernel.executor != Executor::gpu || gpu.empty() || subject.plan == Plan{}) return;
  const auto choice = default_plan(kernel, subject.problem, gpu);
  if (choice && choice->plan == subject.plan) record.labels["plan_origin"] = to_string(*choice);
}

}  // namespace

void add_flag(Record& record, const std::string& flag) {
  std::string& flags = record.labels["flags"];
  flags += (flags.empty() ? "" : ",") + flag;
}

void add_model_values(Record& record, const std::vector<Measurement>& values) {
  for (const Measurement& m : values) {
    record.measurements.push_back({"model." + m.name, m.value, m.unit});
  }
}

Record record_of(const StudySpec& spec, const TimedKernel& timed_kernel,
                 const Provenance& provenance) {
  Record record{.kind = "study",
                .subject = timed_kernel.subject,
                .verdict = "passed",
                .labels = {{"study", spec.name},
                           {"point", timed_kernel.id},
                           {"contender", timed_kernel.kernel->name},
                           {"role", timed_kernel.is_point() ? "point" : "baseline"},
                           {"executor", std::string(name_of(timed_kernel.kernel->executor))},
                           {"plan", to_string(timed_kernel.subject.plan)},
                           {"problem", to_string(timed_kernel.subject.problem)},
                           {"cache", spec.cache == CacheState::cold ? "cold" : "hot"}},
                .provenance = provenance};
  for (const auto& [name, value] : timed_kernel.axes)
    record.labels["axis." + name] = text_of(value);
  add_plan_origin(record, *timed_kernel.kernel, timed_kernel.subject);
  if (spec.in_graph) record.labels["launch"] = "graph";
  if (!spec.baselines.empty()) record.labels["baseline"] = spec.baselines.front().name;
  if (!timed_kernel.is_point()) record.labels["name"] = timed_kernel.baseline;
  return record;
}

Record refused_record(const StudySpec& spec, const TimedKernel& timed_kernel,
                      const Provenance& provenance, const std::string& reason) {
  Record record = record_of(spec, timed_kernel, provenance);
  record.verdict = "failed";
  record.labels["reason"] = reason;
  return record;
}

Record over_budget_record(const StudySpec& spec, const TimedKernel& timed_kernel,
                          const Provenance& provenance) {
  Record record = record_of(spec, timed_kernel, provenance);
  record.verdict = "unsupported";
  record.labels["skipped_by"] = "budget";
  record.labels["reason"] = "the time budget ended before it was its turn";
  return record;
}

std::string id_of(const Skipped& skipped) {
  std::string text = skipped.what + "|" + skipped.reason;
  for (const auto& [name, value] : skipped.axes) text += "|" + name + "=" + text_of(value);
  return fmt::format("{:016x}", fnv1a(text));
}

Record skipped_record(const StudySpec& spec, const Skipped& skipped, const Provenance& provenance) {
  Record record{.kind = "study",
                .verdict = "unsupported",
                .labels = {{"study", spec.name},
                           {"point", id_of(skipped)},
                           {"role", "point"},
                           {"what", skipped.what},
                           {"reason", skipped.reason},
                           {"skipped_by", std::string(name_of(skipped.by))}},
                .provenance = provenance};
  for (const auto& [name, value] : skipped.axes) record.labels["axis." + name] = text_of(value);
  return record;
}

void add_measurements(Record& record, const Measured& measured,
                      const std::vector<BaselineTimes>& baselines) {
  if (!measured.times_ms.empty()) {
    const MedianInterval time = median_interval(measured.times_ms);
    add_interval(record, "time", time, "ms");
    record.measurements.push_back({"rounds", static_cast<double>(measured.times_ms.size()), "1"});
    record.measurements.push_back({"launches", static_cast<double>(measured.launches), "1"});
    record.labels["round_times_ms"] = fmt::format("{:.6g}", fmt::join(measured.times_ms, " "));
    record.measurements.push_back(
        {"rate",
         record.subject->problem.operation->flops(record.subject->problem) / (time.median * 1e9),
         "TFLOP/s"});
    const double bytes = record.subject->problem.operation->bytes(record.subject->problem);
    record.measurements.push_back({"bandwidth", bytes / (time.median * 1e6), "GB/s"});
    record.measurements.push_back({"hbm_bytes", bytes, "B"});
    for (const BaselineTimes& baseline : baselines) {
      add_interval(record, "speed_over_" + baseline.name,
                   speed_over(measured.times_ms, *baseline.times_ms), "1");
    }
  }
  add_states(record, measured);
  for (const Measurement& m : measured.counters) {
    record.measurements.push_back({"counter." + m.name, m.value, m.unit});
  }
  if (!measured.counters.empty()) record.labels["source"] = "hardware counters";
  if (!measured.library.empty()) record.labels["library"] = measured.library;
  if (!measured.why_no_counters.empty()) record.labels["no_counters"] = measured.why_no_counters;
  std::ranges::copy(measured.errors, std::back_inserter(record.measurements));
}

std::vector<std::string> note_missing_metrics(Record& record, const StudySpec& spec,
                                              bool is_timed) {
  std::vector<std::string> missing;
  for (const std::string& metric : spec.metrics) {
    const bool is_of_time = !metric.starts_with("error.") && metric != "model";
    const bool is_there = std::ranges::any_of(record.measurements, [&](const Measurement& m) {
      return m.name == metric || m.name.starts_with(metric + ".");
    });
    if (!is_there && (is_timed || !is_of_time)) missing.push_back(metric);
  }
  if (!missing.empty()) record.labels["not_measured"] = fmt::format("{}", fmt::join(missing, ", "));
  return missing;
}

}  // namespace attest
