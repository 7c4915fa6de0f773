#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "experiments/timing/resident_problem.hpp"

namespace attest {

/// One problem on one device, on which kernels and their Plans are timed: the one place that says
/// how long a timing is, what lies in memory while it runs, and whether its answers were right.
class TimedProblem {
 public:
  struct Options {
    bool is_cold = false;   ///< nothing of the problem is in the L2 cache when a launch begins
    bool in_graph = false;  ///< launches of a timing are replayed from a graph; not with is_cold
    double shortest_ms =
        2;  ///< launches of one timing fill it; a clock's step is half a microsecond
    Paging paging{};
  };
  /// Puts the problem on the device, see ResidentProblem.
  TimedProblem(const Problem& problem, const InputSpec& inputs, Device& device, Options options)
      : options_(options), resident_(problem, inputs, device, options_.paging) {}
  TimedProblem(const Problem& problem, const InputSpec& inputs, Device& device)
      : TimedProblem(problem, inputs, device, Options()) {}

  /// Launches of one timing, in a row. The first question launches twice: a first launch loads
  /// machine code.
  [[nodiscard]] int launches(const KernelInfo& kernel, const Plan& plan);
  /// Milliseconds of a launch: the mean over launches() in a row.
  [[nodiscard]] double time_ms(const KernelInfo& kernel, const Plan& plan) {
    return time_ms(kernel, plan, launches(kernel, plan));
  }
  [[nodiscard]] double time_ms(const KernelInfo& kernel, const Plan& plan, int launches);

  /// Between rounds: other values at the same addresses, so that nobody times what a kernel
  /// remembers.
  void change_values();
  /// One timing more, on poisoned outputs and on values that no timing saw, whose answers are held
  /// against the exact ones: sampled rows, and every row where ResidentProblem does so. A sentence,
  /// or nothing. A kernel cannot tell it from the timings before it.
  [[nodiscard]] std::optional<std::string> why_timed_answers_wrong(const KernelInfo& kernel,
                                                                   const Plan& plan);

  [[nodiscard]] ResidentProblem& resident() { return resident_; }
  [[nodiscard]] const Problem& problem() const { return resident_.problem(); }
  [[nodiscard]] const Paging& paging() const { return options_.paging; }

 private:
  const Options options_;
  ResidentProblem resident_;
  std::size_t draw_ = 0;
  std::map<std::pair<const KernelInfo*, std::string>, int> launches_;
};

}  // namespace attest
