#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "cli/judge.hpp"
#include "core/inputs/random.hpp"
#include "core/run/registry.hpp"
#include "plugin/subject_process.hpp"
#include "verify/judge/run.hpp"

namespace attest {
namespace {

constexpr std::uint64_t pause_stream = 211, value_stream = 212;
constexpr std::int64_t longest_pause_us = 3000;
constexpr int warm_up_runs = 2;
constexpr double agreement = 0.25;
constexpr double jitter_ms = 0.1;  // of a request, on an idle core
// What one launch shows; the campaign has asked the others.
constexpr const char* laws_of_a_run =
    "within_bound,lse_within_bound,outputs_written,inputs_unmodified,clean_execution";

class Stopwatch {
 public:
  Stopwatch(const KernelInfo& kernel, std::uint64_t seed)
      : kernel_(kernel), seed_(seed), device_(make_device(Executor::cpu)) {}

  /// Milliseconds of one run with values of its own; `failure_` if it was wrong.
  double run(const Problem& problem) {
    const std::uint64_t number = runs_++;
    const Case c{.kernel = kernel_.name,
                 .problem = problem,
                 .inputs = {.family = "normal", .seed = random_bits(seed_, value_stream, number)}};
    std::this_thread::sleep_for(
        std::chrono::microseconds(random_below(seed_, pause_stream, number, longest_pause_us)));
    Run run(kernel_, c, *device_);
    try {
      failure_ = verify_case(run, {.glob = laws_of_a_run}).failure;
    } catch (const KernelFault& fault) {
      failure_ = Failure{.law = "*",
                         .the_case = c,
                         .check = Check::failed(fault.what()),
                         .kind = Verdict::crashed};
    }
    return last_answer_time().count() * 1e3;
  }
  /// The mean of `count` runs.
  double mean(const Problem& problem, int count) {
    double sum = 0;
    for (int i = 0; i < count && !failure_; ++i) sum += run(problem);
    return sum / count;
  }
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  [[nodiscard]] int runs() const { return static_cast<int>(runs_); }

 private:
  const KernelInfo& kernel_;
  std::uint64_t seed_, runs_ = 0;
  std::unique_ptr<Device> device_;
  std::optional<Failure> failure_;
};

/// The least problem of a task.
Problem smallest(const Task& task) {
  Problem problem = task.largest();
  problem.batch = task.batch.least;
  problem.query_heads = problem.kv_heads = task.heads.least;
  problem.key_len = task.key_len.least;
  problem.query_len = task.query_len.least;
  return task.why_not(problem) ? task.largest() : problem;
}

}  // namespace

TimedRuns time_runs(const KernelInfo& kernel, const Task& task, std::uint64_t seed, int n) {
  Stopwatch watch(kernel, seed);
  const Problem problem = task.largest();
  (void)watch.mean(problem, warm_up_runs);
  const double first = watch.mean(problem, n);
  const double second = watch.mean(problem, 2 * n);
  // Late work on the last timed run is seen at the next request.
  (void)watch.mean(smallest(task), 1);
  TimedRuns timed{.failure = watch.failure(), .runs = watch.runs()};
  if (timed.failure) return timed;
  const double slope = 2 * second - first;
  timed.is_confirmed = std::abs(slope - first) <= agreement * first + jitter_ms;
  timed.time_ms = timed.is_confirmed ? slope : second;
  return timed;
}

}  // namespace attest
