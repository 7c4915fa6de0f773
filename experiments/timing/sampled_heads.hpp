#pragma once

#include "experiments/timing/sampled_rows.hpp"

namespace attest {

/// Some heads of what launches of a quantiser gave, whole, beside their codes and scales: a scale
/// is of all that shares it, so that no row is a problem of its own. The first and the last head of
/// the batch are among them.
[[nodiscard]] SampledRows sample_heads(const ResidentProblem& resident, const KernelInfo& kernel,
                                       const Plan& plan, std::int64_t heads);

}  // namespace attest
