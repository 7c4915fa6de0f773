#pragma once

#include "core/attention/problem.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// What a kernel is asked about where nobody names a problem: `usual`, with the operation, element
/// type, mask, head_dim, lengths and V of the kernel where it does not take those of `usual`. What
/// else it refuses its own sentence says.
[[nodiscard]] Problem default_problem(const KernelInfo& kernel, Problem usual);

}  // namespace attest
