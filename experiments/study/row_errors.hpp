#pragma once

#include <vector>

#include "core/records/measurement.hpp"
#include "experiments/study/language/error_metrics.hpp"
#include "experiments/timing/resident_problem.hpp"

namespace attest {

/// Errors of sampled rows against the exact answer, each of `metrics` (error_metrics.hpp): of O by
/// its name, `error.rmse`, and of LSE as `error.lse_rmse`. Empty without rows.
[[nodiscard]] std::vector<Measurement> row_errors(const SampledRows& rows, ElementType type,
                                                  const std::vector<ErrorMetric>& metrics);

/// The problem itself, or where it is large one of its kind on which the executor can launch: one
/// KV head, at most 256 queries and keys.
[[nodiscard]] Problem problem_for_errors(const Problem& problem);

}  // namespace attest
