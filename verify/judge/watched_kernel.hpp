#pragma once

#include "core/run/kernel.hpp"
#include "verify/judge/phase.hpp"

namespace attest {

/// The same kernel, whose answers about itself (what it supports, its plans, roundings and scratch
/// memory) count as Phase::ask of `clock`: whoever reads the clock's note after a crash knows which
/// function it was. They leave the floating-point mode of the caller as it was. The clock outlives
/// the kernel.
[[nodiscard]] KernelInfo watched_kernel(KernelInfo kernel, PhaseClock& clock);

}  // namespace attest
