#pragma once

#include <vector>

#include "core/run/kernel.hpp"

namespace attest {

/// Kernels that show what each rounding of a 16-bit backward pass costs: `choice/bwd_flash`, which
/// rounds P and dS as `backward_tiled` and kernels on tensor cores do,
/// `choice/bwd_nothing_rounded`, which rounds its outputs alone, others that round one thing more
/// than that, and one that rounds all of them. They are emulations, for studies of errors, and not
/// among the kernels that a campaign draws.
[[nodiscard]] std::vector<KernelInfo> gradient_choices();

}  // namespace attest
