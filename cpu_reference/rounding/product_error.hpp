#pragma once

#include "core/attention/accumulation.hpp"
#include "core/attention/parts.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"

namespace attest {

/// kappa of a sum of `terms` products of factors that are read in parts, relative to its absolute
/// sum: accumulation_error() of every chain, parts_error() of every product (step 10 of
/// error_bound.hpp). `sums`: as for accumulation_error(). `is_one_sum`: the small products of all
/// terms are summed before the large ones, so that only the latter have steps at full size.
[[nodiscard]] double product_error(const Accumulation& how, const Parts& parts, double terms,
                                   double sums, bool is_one_sum, const Arithmetic& arithmetic);

}  // namespace attest
