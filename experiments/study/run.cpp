#include "experiments/study/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/base/on_threads.hpp"
#include "experiments/study/answer.hpp"
#include "experiments/study/gpu_users.hpp"
#include "experiments/study/on_executor.hpp"
#include "experiments/study/study_record.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

/// One writer's part of a study.
class Runner {
 public:
  Runner(const StudySpec& spec, const Expansion& expansion, const ResultsFolder& folder,
         const StudyRun& run)
      : spec_(spec),
        expansion_(expansion),
        folder_(folder),
        run_(run),
        writer_(folder.records_of(run.shard), 1),
        groups_(schedule(expansion.points, run.seed, most_side_by_side(spec, expansion.points))) {
    folder.require_no_other_writer(run.shard);
    done_ = finished_points(folder.records());
    todo_ = groups_to_do(groups_, run.shard, done_);
    for (const Group& group : todo_) wanted_ += group.wanted();
    for (const Group& group : groups_) outcome_.points += group.points.size();
  }

  StudyOutcome go() {
    write_skipped();
    try {
      open_device();
      start_ = Clock::now();
      judge();
      measure();
    } catch (const Interrupted&) {
      outcome_.is_interrupted = true;
    }
    say_what_is_missing();
    outcome_.wall_s = seconds_since(start_);
    if (!outcome_.is_interrupted) conclude();
    writer_.close();
    return std::move(outcome_);
  }

 private:
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  [[nodiscard]] double seconds_left() const {
    return run_.time_budget_s ? *run_.time_budget_s - seconds_since(start_)
                              : std::numeric_limits<double>::infinity();
  }

  void write_skipped() {
    for (std::size_t i = 0; i < expansion_.skipped.size(); ++i) {
      if (static_cast<std::int64_t>(i) % run_.shard.count != run_.shard.index) continue;
      ++outcome_.skipped;
      if (!done_.insert(id_of(expansion_.skipped[i])).second) continue;
      writer_.write(skipped_record(spec_, expansion_.skipped[i], current_provenance("")));
    }
  }

  /// All of a study's kernels run on one executor, but for CPU kernels beside a GPU.
  void open_device() {
    for (const Group& group : todo_) {
      const Executor executor = group.any().kernel->executor;
      if (executor == Executor::gpu && !gpu_) gpu_ = run_.make_device(executor);
    }
    device_name_ = gpu_ ? gpu_->description() : "";
    if (gpu_) users_.emplace(device_name_, run_.gpu_users);
    cache_ = std::make_unique<VerifiedCache>(run_.verified, run_.build, device_name_);
    gate_ = std::make_unique<Gate>(run_.make_runner, cache_.get());
  }

  void judge() {
    std::vector<Gate::Candidate> candidates;
    for (const Group& group : todo_) {
      for (const TimedKernel& c : group.points) candidates.push_back(c.candidate());
      for (const TimedKernel& c : group.baselines) candidates.push_back(c.candidate());
    }
    std::unique_ptr<Progress> progress;
    gate_->judge(candidates,
                 {.jobs = run_.jobs,
                  .is_interrupted = run_.is_interrupted,
                  .on_start =
                      [&](std::size_t cases) {
                        if (cases == 0) return;
                        progress = std::make_unique<Progress>(
                            ProgressState{.label = "all laws on a small problem of each kind",
                                          .unit = "verdict",
                                          .total = static_cast<std::int64_t>(cases)},
                            run_.progress);
                      },
                  .on_case_done = [&] { progress->advance(); }});
    outcome_.spent.verification += seconds_since(start_);
  }

  void measure() {
    if (wanted_ == 0) return;
    Progress progress({.label = spec_.name,
                       .unit = "point",
                       .total = static_cast<std::int64_t>(wanted_),
                       .seconds_limit = run_.time_budget_s.value_or(0)},
                      run_.progress);
    std::vector<const Group*> timed, modelled;
    for (const Group& group : todo_) {
      const bool is_timed = group.any().kernel->executor == Executor::gpu;
      (is_timed ? timed : modelled).push_back(&group);
    }
    time_groups(timed, progress);
    model_groups(modelled, progress);
  }

  void time_groups(const std::vector<const Group*>& groups, Progress& progress) {
    if (groups.empty()) return;
    TimingOptions options = timing_options(spec_);
    options.seed = run_.seed;
    options.warm_up_s = run_.warm_up_s;
    options.is_interrupted = run_.is_interrupted;
    GroupTimer timer(*gpu_, *gate_, options);
    std::size_t waiting = 0;
    for (const Group* group : groups) waiting += group->points.size() + group->baselines.size();
    for (const Group* const group : groups) {
      const double left = seconds_left();
      const std::size_t here = group->points.size() + group->baselines.size();
      progress.set_label(to_string(group->any().subject.problem));
      if (left <= 0) {
        for (const TimedKernel& point : group->points) leave_out(point);
      } else {
        // Each its share, so that the last ones are timed as well.
        const double share = left * static_cast<double>(here) / static_cast<double>(waiting);
        const bool began_shared = is_gpu_shared();
        const GroupTimes times = timer.measure(*group, share);
        outcome_.spent += times.spent;
        write_times(*group, times, began_shared || is_gpu_shared());
        if (!times.device_lost.empty()) throw MachineError(times.device_lost);
        progress.advance(static_cast<std::int64_t>(group->wanted()));
      }
      waiting -= here;
    }
  }

  void leave_out(const TimedKernel& timed_kernel) {
    if (!timed_kernel.is_point()) return;
    writer_.write(over_budget_record(spec_, timed_kernel, current_provenance(device_name_)));
    const std::scoped_lock lock(mutex_);
    ++outcome_.over_budget;
  }

  [[nodiscard]] bool is_gpu_shared() const { return run_.is_gpu_shared || users_->are_several(); }

  void write_times(const Group& group, const GroupTimes& times, bool is_shared) {
    const Provenance provenance = current_provenance(device_name_);
    std::vector<BaselineTimes> baselines;
    for (std::size_t i = 0; i < group.baselines.size(); ++i) {
      if (times.baselines[i].times_ms.empty()) continue;
      baselines.push_back({group.baselines[i].baseline, &times.baselines[i].times_ms});
    }
    const auto write = [&](const TimedKernel& timed_kernel, const Measured& measured) {
      if (!timed_kernel.is_wanted) return;
      if (!measured.why_refused.empty()) {
        refuse(timed_kernel, measured.why_refused, provenance);
        return;
      }
      if (measured.times_ms.empty()) return;  // the device was lost before its turn
      Record record = record_of(spec_, timed_kernel, provenance);
      const bool was_beside_baselines = !measured.left_race;
      add_measurements(record, measured,
                       was_beside_baselines ? baselines : std::vector<BaselineTimes>{});
      if (measured.left_race) add_flag(record, "left_race");
      if (is_shared) add_flag(record, "shared_gpu");
      if (!measured.errors.empty()) record.labels["error_problem"] = record.labels["problem"];
      note_once(measured.why_no_counters);
      add_model(record, timed_kernel);
      note_missing(record, timed_kernel, measured);
      finish(record);
    };
    for (std::size_t i = 0; i < group.points.size(); ++i) write(group.points[i], times.points[i]);
    for (std::size_t i = 0; i < group.baselines.size(); ++i)
      write(group.baselines[i], times.baselines[i]);
  }

  /// What an executor gives: no times, but what models count; several at a time.
  void model_groups(const std::vector<const Group*>& groups, Progress& progress) {
    std::vector<const TimedKernel*> timed_kernels;
    for (const Group* const group : groups) {
      for (const TimedKernel& c : group->points) timed_kernels.push_back(&c);
      for (const TimedKernel& c : group->baselines) {
        if (c.is_wanted) timed_kernels.push_back(&c);
      }
    }
    on_threads(timed_kernels.size(), run_.jobs, [&] {
      return [&, devices = std::make_shared<DevicesOfThread>(run_.make_device)](std::size_t i) {
        if (run_.is_interrupted && run_.is_interrupted()) throw Interrupted{};
        if (seconds_left() <= 0) return leave_out(*timed_kernels[i]);
        model_one(*timed_kernels[i], *devices);
        progress.advance();
      };
    });
  }

  void model_one(const TimedKernel& timed_kernel, DevicesOfThread& devices) {
    const Provenance provenance = current_provenance("");
    const auto [measured, error_problem] =
        measure_on_executor(timed_kernel, *gate_, errors_asked_for(spec_), devices);
    if (!measured.why_refused.empty()) {
      refuse(timed_kernel, measured.why_refused, provenance);
      return;
    }
    Record record = record_of(spec_, timed_kernel, provenance);
    record.labels["source"] = "executor";
    add_measurements(record, measured, {});
    if (!measured.errors.empty()) record.labels["error_problem"] = error_problem;
    add_model(record, timed_kernel);
    note_missing(record, timed_kernel, measured);
    finish(record);
  }

  void add_model(Record& record, const TimedKernel& timed_kernel) const {
    const Case& c = timed_kernel.subject;
    if (run_.model) add_model_values(record, run_.model(*timed_kernel.kernel, c.problem, c.plan));
  }

  void refuse(const TimedKernel& timed_kernel, const std::string& why,
              const Provenance& provenance) {
    writer_.write(refused_record(spec_, timed_kernel, provenance, why));
    const std::scoped_lock lock(mutex_);
    outcome_.refused.push_back(fmt::format("{} {} of {}: {}", timed_kernel.kernel->name,
                                           to_string(timed_kernel.subject.plan),
                                           to_string(timed_kernel.subject.problem), why));
  }

  void finish(const Record& record) {
    writer_.write(record);
    const std::scoped_lock lock(mutex_);
    ++outcome_.timed;
  }

  /// What was asked for and is not there must be said: a table would only be narrower.
  void note_missing(Record& record, const TimedKernel& timed_kernel, const Measured& measured) {
    const bool is_timed = timed_kernel.kernel->executor == Executor::gpu;
    const auto missing = note_missing_metrics(record, spec_, is_timed);
    if (missing.empty()) return;
    const std::scoped_lock lock(mutex_);
    Missing& there =
        missing_[fmt::format("{} of {}", fmt::join(missing, ", "), timed_kernel.kernel->name)];
    if (there.points++ == 0) there.why = measured.why_no_errors;
  }

  void say_what_is_missing() {
    for (const auto& [what, there] : missing_) {
      outcome_.notes.push_back(fmt::format("{} was asked for and not measured at {}{}{}", what,
                                           counted(there.points, "point"),
                                           there.why.empty() ? "" : ": ", there.why));
    }
  }

  void note_once(const std::string& note) {
    const bool is_new = std::ranges::find(outcome_.notes, note) == outcome_.notes.end();
    if (is_new && !note.empty()) outcome_.notes.push_back(note);
  }

  /// Other writers may have finished since: the folder says what is done. A run that had nothing to
  /// do says nothing that the folder holds already.
  void conclude() {
    const std::vector<Record> records = folder_.records();
    const auto holds = [&](const char* kind) {
      return wanted_ == 0 && std::ranges::find(records, kind, &Record::kind) != records.end();
    };
    outcome_.is_complete = groups_to_do(groups_, {}, finished_points(records)).empty();
    // Those of a study that was cut short are told and not written: resumed, it has others.
    if (outcome_.over_budget > 0) {
      outcome_.answers = undecided_records(
          spec_, fmt::format("{} of {} left out by the time budget", outcome_.over_budget,
                             counted(outcome_.points, "point")));
    } else if (outcome_.is_complete) {
      outcome_.answers = answer_records(spec_, records);
    }
    for (Record& answer : outcome_.answers) {
      answer.provenance = current_provenance(device_name_);
      if (outcome_.is_complete && !holds("study_answer")) writer_.write(answer);
    }
    if (holds("study_summary")) return;
    Record summary = summary_record(spec_, outcome_, current_provenance(device_name_));
    summary.labels["seed"] = std::to_string(run_.seed);
    summary.labels["part"] = fmt::format("{} of {}", run_.shard.index + 1, run_.shard.count);
    writer_.write(summary);
  }

  const StudySpec& spec_;
  const Expansion& expansion_;
  const ResultsFolder& folder_;
  const StudyRun& run_;
  RecordWriter writer_;
  const std::vector<Group> groups_;
  std::vector<Group> todo_;
  std::size_t wanted_ = 0;
  std::set<std::string> done_;
  std::unique_ptr<Device> gpu_;
  std::string device_name_;
  std::optional<GpuUsers> users_;  ///< of gpu_
  std::unique_ptr<VerifiedCache> cache_;
  std::unique_ptr<Gate> gate_;
  /// A metric that points of a kernel have not.
  struct Missing {
    std::size_t points = 0;
    std::string why{};  ///< of the first; empty: not known
  };
  std::map<std::string, Missing> missing_;
  std::mutex mutex_;  ///< of outcome_ and missing_ while executors work
  StudyOutcome outcome_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

StudyOutcome run_study(const StudySpec& spec, const Expansion& expansion,
                       const ResultsFolder& folder, const StudyRun& run) {
  return Runner(spec, expansion, folder, run).go();
}

double StudyOutcome::overhead() const {
  if (!(spent.kernels > 0)) return std::numeric_limits<double>::quiet_NaN();
  return (wall_s - spent.kernels - spent.verification - spent.warm_up) / spent.kernels;
}

Record summary_record(const StudySpec& spec, const StudyOutcome& outcome,
                      const Provenance& provenance) {
  const auto count = [](const char* name, std::size_t value) {
    return Measurement{name, static_cast<double>(value), "1"};
  };
  const Spent& spent = outcome.spent;
  return {.kind = "study_summary",
          .labels = {{"study", spec.name}, {"question", spec.question}},
          .measurements = {count("points", outcome.points),
                           count("timed", outcome.timed),
                           count("skipped", outcome.skipped + outcome.over_budget),
                           count("left_out_by_budget", outcome.over_budget),
                           count("refused", outcome.refused.size()),
                           {"kernel_time", spent.kernels, "s"},
                           {"verification_time", spent.verification, "s"},
                           {"warm_up_time", spent.warm_up, "s"},
                           {"wall_time", outcome.wall_s, "s"},
                           {"overhead", outcome.overhead(), "1"}},
          .provenance = provenance};
}

}  // namespace attest
