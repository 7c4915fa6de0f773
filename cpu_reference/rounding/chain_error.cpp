#include "cpu_reference/rounding/chain_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest {

double chain_error(double steps, double step_error) {
  const double sum = steps * step_error;
  return sum < 1 ? sum / (1 - sum) : std::numeric_limits<double>::infinity();
}

double accumulation_error(const Accumulation& how, double terms, double sums,
                          const Arithmetic& arithmetic) {
  const double u = arithmetic.unit_roundoff;
  if (how.kind == Accumulation::Kind::fp32_fma) return chain_error(terms, u);
  const double steps = std::ceil(terms / how.fused_terms) + (sums - 1);
  // b + 1 aligned terms, each cut at 2^-F of the largest, and the sum cut to fp32 or to fewer bits.
  const double cut = std::max(2 * u, std::exp2(-how.sum_bits));
  return chain_error(steps, (how.fused_terms + 1) * std::exp2(-how.fraction_bits) + cut);
}

}  // namespace attest
