#pragma once

#include <map>
#include <string>

#include "experiments/tuning/bench.hpp"
#include "experiments/tuning/resident_problem.hpp"
#include "experiments/tuning/small_case.hpp"

namespace attest {

/// Tries Plans on a device. A Plan is verified twice: all laws on a small problem of the same kind,
/// and on the problem itself every LSE written, sampled rows of O and LSE within their bounds.
/// Inputs are N(0, 1), and all Plans share them.
class DeviceBench final : public Bench {
 public:
  /// All arguments outlive the bench. Throws MachineError when the device has no room.
  DeviceBench(const KernelInfo& kernel, const Problem& problem, Device& device,
              SmallCases& small_cases)
      : kernel_(kernel), resident_(problem, {}, device), small_cases_(small_cases) {}

  [[nodiscard]] std::optional<std::string> why_wrong(const Plan& plan) override;
  /// Mean over as many launches as fill about two milliseconds.
  [[nodiscard]] double time_ms(const Plan& plan) override;

 private:
  const KernelInfo& kernel_;
  ResidentProblem resident_;
  SmallCases& small_cases_;
  std::map<std::string, int> launches_;  ///< that are timed at once, by Plan
};

}  // namespace attest
