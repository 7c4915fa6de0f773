#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/records/provenance.hpp"
#include "core/run/kernel.hpp"
#include "core/run/tuning_table.hpp"
#include "experiments/tuning/bench.hpp"
#include "experiments/tuning/race.hpp"

namespace attest {

struct RefusedPlan {
  Plan plan;
  std::string reason;
};

/// What came out for one kernel and problem.
struct Tuning {
  std::optional<TunedPlan> winner;  ///< nothing when every Plan was refused
  std::vector<RefusedPlan> refused;
  std::size_t timings = 0;
};

/// Verifies every Plan that the kernel offers for the problem and races those that passed for a few
/// rounds; then the best of them against mixtures (mixed_plans) in a race of full length. A wrong
/// Plan is never timed. The device's name is in `provenance`.
[[nodiscard]] Tuning tune(const KernelInfo& kernel, const Problem& problem, Bench& bench,
                          const Provenance& provenance, const RaceOptions& options = {});

/// Every GPU kernel among `kernels` that runs the problem and has a choice of Plans.
[[nodiscard]] std::vector<const KernelInfo*> tunable(const std::vector<const KernelInfo*>& kernels,
                                                     const Problem& problem);

}  // namespace attest
