#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/records/provenance.hpp"
#include "core/run/kernel.hpp"
#include "core/run/tuning_table.hpp"
#include "experiments/timing/gate.hpp"
#include "experiments/timing/rounds.hpp"
#include "experiments/timing/timed_problem.hpp"

namespace attest {
struct RefusedPlan {
  Plan plan;
  std::string reason;
};

/// Result of tuning one kernel for one problem.
struct Tuning {
  std::optional<TunedPlan> winner;  ///< nothing when every Plan was refused
  std::vector<RefusedPlan> refused;
  std::size_t timings = 0;
};

struct TuneOptions {
  RaceOptions race{};
  std::function<bool()> is_interrupted{};
};

/// Verifies every Plan that the kernel offers for the problem and races those that passed for a few
/// rounds; then the best of them against mixtures (mixed_plans) in a race of full length. A wrong
/// Plan is never timed, and one whose timed answers are wrong does not win. The device's name is in
/// `provenance`. Throws Interrupted when asked to end.
[[nodiscard]] Tuning tune(const KernelInfo& kernel, TimedProblem& timed, Gate& gate,
                          const Provenance& provenance, const TuneOptions& options = {});

/// Every GPU kernel among `kernels` that runs the problem and has a choice of Plans.
[[nodiscard]] std::vector<const KernelInfo*> tunable(const std::vector<const KernelInfo*>& kernels,
                                                     const Problem& problem);

/// A kernel tries its orders, splits and packings with one of its tiles. This puts the tiles of the
/// two fastest Plans with different tiles together with the order, group, scheduling, splits and
/// packing of every offered Plan: the mixtures that the kernel takes and does not offer itself.
[[nodiscard]] std::vector<Plan> mixed_plans(const KernelInfo& kernel, const Problem& problem,
                                            const std::vector<Plan>& offered,
                                            const std::vector<Plan>& fastest_first);

}  // namespace attest
