#pragma once

#include <vector>

#include "core/run/kernel.hpp"

namespace attest {

/// Kernels that show what each rounding of a 16-bit FlashAttention-2 kernel costs: `choice/flash`,
/// the emulation with the roundings of flash_precision on sm_90, and kernels that differ from it in
/// one place each. They are emulations, for studies of errors, and not among the kernels that a
/// campaign draws.
[[nodiscard]] std::vector<KernelInfo> precision_choices();

}  // namespace attest
