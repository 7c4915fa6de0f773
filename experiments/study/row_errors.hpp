#pragma once

#include <vector>

#include "core/records/measurement.hpp"
#include "experiments/tuning/resident_problem.hpp"

namespace attest {

/// Errors of sampled rows against the exact answer: `rmse`, `max_abs`, `over_bound_max` of O, and
/// the same of LSE as `lse_rmse` and so on. Empty without rows.
[[nodiscard]] std::vector<Measurement> row_errors(const SampledRows& rows, ElementType type);

/// The problem itself, or where it is large one of its kind on which the executor can launch: one
/// KV head, at most 256 queries and keys.
[[nodiscard]] Problem problem_for_errors(const Problem& problem);

}  // namespace attest
