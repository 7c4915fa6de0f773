#pragma once

#include "core/attention/accumulation.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"

namespace attest {

/// g(k) = k e / (1 - k e): error of a sum relative to its absolute sum, no term of which passes
/// through more than k = `steps` roundings of relative error e = `step_error`. For a sum of n
/// numbers k is n - 1 in any order, for n products n. Infinite from k e = 1 on. [Higham, Accuracy
/// and Stability of Numerical Algorithms, section 3.1]
[[nodiscard]] double chain_error(double steps, double step_error);

/// kappa: error of a sum of `terms` products relative to its absolute sum, for steps that round as
/// `how` says (step 1 of error_bound.hpp). The keys of `sums` sums each begin with a step of a
/// tensor core and go on with the accumulator, so that each but the first may cost a short step
/// more.
[[nodiscard]] double accumulation_error(const Accumulation& how, double terms, double sums,
                                        const Arithmetic& arithmetic);

}  // namespace attest
