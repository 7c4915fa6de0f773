#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "experiments/study/language/point.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

/// For tests: an emulated kernel that says it runs on a GPU and how long a launch takes.
inline KernelInfo pretended_gpu_kernel(const std::string& name, std::function<double()> time_ms) {
  KernelInfo kernel = *find_kernel("o5_deferred", Executor::cpu);
  kernel.name = name;
  kernel.executor = Executor::gpu;
  kernel.timed_launch = [time_ms = std::move(time_ms), launch = kernel.launch](
                            const ForwardArguments& a, Device& device, int) {
    launch(a, device);
    return time_ms();
  };
  return kernel;
}

/// Judges such kernels where they really run.
class PretendingRunner final : public CaseRunner {
 public:
  [[nodiscard]] CaseAnswer run(const KernelInfo& kernel, const CaseTask& task) override {
    KernelInfo real = kernel;
    CaseTask there = task;
    if (kernel.executor == Executor::gpu) real.executor = there.executor = Executor::cpu;
    ++cases;
    return inner_.run(real, there);
  }
  static inline std::atomic<int> cases = 0;  ///< of all runners

 private:
  InProcessRunner inner_;
};

inline Case case_of(const KernelInfo& kernel, const std::string& problem, std::uint64_t seed = 1) {
  Case c{.kernel = kernel.name, .problem = problem_from_string(problem), .inputs = {.seed = seed}};
  c.plan = kernel.plans(c.problem).front();
  return c;
}

inline Point point_of(const KernelInfo& kernel, const std::string& problem,
                      std::vector<Point::Rival> rivals = {}) {
  return {.kernel = &kernel,
          .subject = case_of(kernel, problem),
          .axes = {{"problem.key_len", problem}},
          .baselines = std::move(rivals)};
}

}  // namespace attest
