#pragma once

#include "experiments/timing/sampled_rows.hpp"

namespace attest {

/// Some lists of what launches of select_operation gave, beside their answers: a query with all of
/// its heads and the keys that it sees is a problem of its own, whose keys have other numbers. The
/// first and the last query are among them.
[[nodiscard]] SampledRows sample_lists(const ResidentProblem& resident, const KernelInfo& kernel,
                                       const Plan& plan, std::int64_t lists);

}  // namespace attest
