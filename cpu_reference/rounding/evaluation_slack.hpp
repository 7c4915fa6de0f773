#pragma once

namespace attest {

// A bound is evaluated with computed weights and sums. Their error is that of double arithmetic, at
// most 1e-8 of what the bound allows the kernel in the exponent and (n + d) 2^-50 in the sums;
// these factors absorb it.
inline constexpr double exponent_slack = 1 + 0x1p-20;
inline constexpr double evaluation_slack = 1 + 0x1p-10;

}  // namespace attest
