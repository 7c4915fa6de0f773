#pragma once

#include "core/attention/problem.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Problem for a kernel where nobody names one: `usual`, with the operation, element type, mask,
/// head_dim, codes, scales, lengths and V of the kernel where it does not take those of `usual`.
/// The kernel's own sentence says what else it refuses.
[[nodiscard]] Problem default_problem(const KernelInfo& kernel, Problem usual);

}  // namespace attest
