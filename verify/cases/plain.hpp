#pragma once

#include "core/run/kernel.hpp"

namespace attest {

/// The problem under the mask, without a window.
[[nodiscard]] Problem with_prefix_mask(Problem problem, Mask mask);

/// The problem without any feature (problem_fields()), and under the first mask without a window
/// that the kernel has, if it has one.
[[nodiscard]] Problem plain_problem(const KernelInfo& kernel, Problem problem);

}  // namespace attest
