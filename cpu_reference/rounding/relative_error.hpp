#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu_reference/rounding/arithmetic.hpp"

namespace attest {
/// Relative errors of factors compose in the logarithm. -ln(1 - e): the logarithm of a factor
/// within 1 +- e lies within this of 0; infinite from e = 1 on.
///
/// With S the sum of these over the factors of a term, the term is within 1 +- (e^S - 1), as (1 -
/// e) (1 + e) < 1; in an exponent S counts as it is.
[[nodiscard]] inline double log_of(double relative_error) {
  return relative_error < 1 ? -std::log1p(-relative_error)
                            : std::numeric_limits<double>::infinity();
}

/// Relative error of a quotient or a logarithm of which `declared` is claimed: it is rounded to the
/// arithmetic, so none is below u.
[[nodiscard]] inline double declared_error(double declared, const Arithmetic& arithmetic) {
  return std::max(declared, arithmetic.unit_roundoff);
}

// A bound is evaluated with computed weights and sums. Their error is that of double arithmetic, at
// most 1e-8 of what the bound allows the kernel in the exponent and (n + d) 2^-50 in the sums;
// these factors absorb it.
inline constexpr double exponent_slack = 1 + 0x1p-20;
inline constexpr double evaluation_slack = 1 + 0x1p-10;

}  // namespace attest
