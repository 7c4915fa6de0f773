#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/run/kernel.hpp"
#include "plugin/task.hpp"
#include "verify/campaign/kernel_result.hpp"
#include "verify/judge/verdict.hpp"
#include "verify/workers/worker_process.hpp"

namespace attest {

/// Verdict of `attest judge` on one solution, and what it rests on. A member without a value was
/// not decided: an earlier layer failed, or nothing was timed.
struct Judged {
  std::string task;
  bool is_compiled = false;  ///< it was loaded, and is called as the task asks
  std::optional<bool> exact{}, bound{}, statistics{};
  std::optional<double> time_ms{};
  std::optional<bool> is_time_confirmed{}, is_floor_violated{};
  Verdict verdict = Verdict::failed;
  std::string reason{};   ///< a sentence to learn from
  std::string problem{};  ///< the smallest that shows it
  std::string replay{};   ///< a counterexample's file
  std::int64_t cases = 0;
  std::vector<std::string> flags{};
  std::string box{};
};

/// Steps of a reward: 0.1 it is loaded, 0.2 it answers, 0.4 no exact law is broken, 0.6 it is
/// within the bound, 0.8 no statistics speak against it, 1 its time is confirmed.
[[nodiscard]] double score_of(const Judged& judged);
/// Verdict as a JSON object; what was not decided is null.
[[nodiscard]] Json to_json(const Judged& judged);
/// A few lines for people.
[[nodiscard]] std::string to_string(const Judged& judged);

/// Sentence about a failure: the law, what broke it, the worst element with its exact value and
/// bound, and the inputs.
[[nodiscard]] std::string reason_of(const Failure& failure);
/// Fills in `exact`, `bound` and `statistics`: the layer whose law was broken is false, surer ones
/// that checked something hold, less sure ones are open. All stay open where no answer came, as
/// after a crash.
void set_layers(Judged& judged, const KernelResult& result);

/// Runs of the largest problem that a task asks for, of which none repeats another's values.
struct TimedRuns {
  std::optional<Failure> failure{};  ///< of the first run that was wrong
  int runs = 0;
  double time_ms = 0;
  bool is_confirmed = false;
};
/// Times n runs and 2n by this process's clock, from request to answer. Each is asked for when the
/// one before was compared with its exact answer, after a drawn pause. The time is the slope
/// between the two, confirmed where it is that of n runs but for a quarter; else the mean of 2n.
[[nodiscard]] TimedRuns time_runs(const KernelInfo& kernel, const Task& task, std::uint64_t seed,
                                  int n);

/// Judges for whoever connects to the Unix socket at `path`, one request after the other: a line of
/// JSON {"solution": ..., "task": ..., and other options of `attest judge`} gets a line, the
/// verdict or {"error": sentence}. Until it is interrupted. Throws InvalidInput for a path that is
/// taken.
ExitCode serve_judge(const std::string& path);

/// `attest judge --ahead`, before any solution is there: starts what takes long, unless
/// `is_for_plugins`: Python with NumPy in boxes, one of them a worker's. Then judges by a line of
/// stdin, the arguments of `attest judge` as a list of JSON. Nothing that it holds has seen another
/// solution.
ExitCode judge_when_asked(bool is_for_plugins);
/// The worker that was started ahead, once; then new ones. For several threads.
[[nodiscard]] std::unique_ptr<WorkerProcess> worker_for_judging(const WorkerSetup& setup);

}  // namespace attest
