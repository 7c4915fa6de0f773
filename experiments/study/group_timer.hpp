#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/records/measurement.hpp"
#include "core/run/device.hpp"
#include "experiments/study/language/error_metrics.hpp"
#include "experiments/study/schedule.hpp"
#include "experiments/timing/gate.hpp"
#include "experiments/timing/rounds.hpp"
#include "experiments/timing/timed_problem.hpp"

namespace attest {

/// Result of a kernel: why it was refused, or its times and what was read beside them.
struct Measured {
  std::string why_refused{};          ///< empty: it was verified, and its timed answers were right
  std::vector<double> times_ms{};     ///< of a launch, one a round
  int launches = 0;                   ///< in a row, of which each of times_ms is the mean
  std::vector<DeviceState> states{};  ///< after each timing, where the device says it
  /// By which Device::throttled_ms grew while its group was timed: baselines' timings are in it.
  std::map<std::string, double> throttled_ms{};
  bool left_race = false;               ///< slower than others in successive halving: few rounds
  std::vector<Measurement> errors{};    ///< on request, of sampled rows
  std::string why_no_errors{};          ///< on request, where there are none
  std::vector<Measurement> counters{};  ///< on request, from launches of their own
  std::string why_no_counters{};
  std::string library{};  ///< of others, that computed: its version, and what of it ran
};

/// Seconds that a group or a whole study took, by what they were spent on.
struct Spent {
  double kernels = 0;       ///< in launches that were timed
  double warm_up = 0;       ///< launches before them, the first ones too, and counters
  double verification = 0;  ///< judging, and making the inputs on which outputs are compared

  Spent& operator+=(const Spent& other);
};

/// Results of a group, and what its timing took.
struct GroupTimes {
  std::vector<Measured> points, baselines;  ///< of the group's, in its order
  Spent spent;
  std::string device_lost{};  ///< the device failed: some kernel bears the sentence
};

/// Options of timing, which all groups of a study share.
struct TimingOptions {
  CacheState cache = CacheState::hot;
  bool in_graph = false;
  std::size_t repeats = 0;  ///< rounds; 0: until `target`
  /// Successive halving: the share that stays after a heat, until so few points are left as a group
  /// has at most without it. 1: all stay.
  double keep = 1;
  double target = 0.01;
  std::vector<std::string> counters{};
  std::vector<ErrorMetric> errors{};
  std::uint64_t seed = 1;
  double warm_up_s = 0.2;  ///< clocks settle within it
  double timing_ms = 10;   ///< launches of one timing take about this long
  std::function<bool()> is_interrupted{};
};

/// The errors that the study wants beside times.
[[nodiscard]] std::vector<ErrorMetric> errors_asked_for(const StudySpec& spec);
/// Options of timing as a study's file says them; the seed and what ends the timing are the
/// caller's.
[[nodiscard]] TimingOptions timing_options(const StudySpec& spec);

/// Times groups on a device. Nothing is timed that does not pass the gate or whose sampled rows of
/// the problem itself are not within their bounds; what gave wrong answers while it was timed is
/// refused afterwards. Keeps the last problem on the device.
class GroupTimer {
 public:
  /// Both outlive the timer.
  GroupTimer(Device& device, Gate& gate, TimingOptions options)
      : device_(device), gate_(gate), options_(std::move(options)) {}

  /// Ends about `seconds` after its beginning, but not before there is an interval. Throws
  /// Interrupted when asked to end, MachineError when the problem does not fit the device.
  [[nodiscard]] GroupTimes measure(const Group& group, double seconds);

 private:
  /// Someone who takes part in the rounds.
  struct Entrant {
    const TimedKernel* timed_kernel;
    Measured* measured;
  };

  void place(const TimedKernel& timed_kernel);
  /// Seconds of a launch whose answer is not looked at: libraries compile and choose in it.
  [[nodiscard]] double first_launch_s(const TimedKernel& timed_kernel);
  [[nodiscard]] Measured verified(const TimedKernel& timed_kernel, Spent& spent);
  void warm_up(std::vector<Entrant>& entrants);
  [[nodiscard]] double time(const Entrant& entrant, Spent& spent);
  /// Lets the slower points of `entrants` leave; returns how many points are left.
  [[nodiscard]] std::size_t halve(std::vector<Entrant>& entrants, std::size_t points, Spent& spent);
  [[nodiscard]] double timed_ms(const TimedKernel& timed_kernel);
  /// Timing of `entrants`, each known by its number among them: their states are noted, the time in
  /// kernels is added to `spent`.
  [[nodiscard]] Timing timing(const std::vector<Entrant>& entrants, Spent& spent);
  void check_timed_answers(const Entrant& entrant, GroupTimes& result);
  void count(const TimedKernel& timed_kernel, Measured& measured);
  void look_for_interrupt() const;

  Device& device_;
  Gate& gate_;
  TimingOptions options_;
  std::string placed_{};
  std::unique_ptr<TimedProblem> timed_;
};

}  // namespace attest
