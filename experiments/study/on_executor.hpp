#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/records/measurement.hpp"
#include "core/run/device.hpp"
#include "experiments/study/group_timer.hpp"
#include "experiments/study/language/error_metrics.hpp"
#include "experiments/study/schedule.hpp"
#include "experiments/timing/gate.hpp"
#include "experiments/timing/sampled_rows.hpp"

namespace attest {
/// Makes devices when they are first needed, of one thread.
class DevicesOfThread {
 public:
  explicit DevicesOfThread(std::function<std::unique_ptr<Device>(Executor)> make)
      : make_(std::move(make)) {}
  [[nodiscard]] Device& operator[](Executor executor) {
    auto& device = devices_[executor];
    if (!device) device = make_(executor);
    return *device;
  }

 private:
  std::function<std::unique_ptr<Device>(Executor)> make_;
  std::map<Executor, std::unique_ptr<Device>> devices_;
};

/// Result of a kernel on an executor: no time; whether it is right and, on request, its errors,
/// on a problem that is short enough.
struct OnExecutor {
  Measured measured;            ///< errors, or why it was refused
  std::string error_problem{};  ///< on which they were measured
};
/// Verifies a kernel by the gate and, if errors are asked for, launches it on
/// problem_for_errors(). Throws MachineError when there is no device or no room on it.
[[nodiscard]] OnExecutor measure_on_executor(const TimedKernel& timed_kernel, Gate& gate,
                                             const std::vector<ErrorMetric>& errors,
                                             DevicesOfThread& devices);

/// Errors of sampled rows against the exact answer, each of `metrics`, of every output that the
/// kernel gives, with the names of error_prefix(). Empty without rows.
[[nodiscard]] std::vector<Measurement> row_errors(const SampledRows& sampled,
                                                  const Problem& problem,
                                                  const std::vector<ErrorMetric>& metrics);
/// Sentence that says why a kernel of the role `limit` has no errors.
[[nodiscard]] std::string gives_no_answer(const KernelInfo& kernel);

/// The problem itself, or where it is large one of its kind on which the executor can launch: one
/// KV head, at most 256 queries and keys.
[[nodiscard]] Problem problem_for_errors(const Problem& problem);

}  // namespace attest
