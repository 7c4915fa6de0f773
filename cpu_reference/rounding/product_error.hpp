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

/// Error of a product from reading both factors in parts, before anything is summed, relative to |x
/// y| (step 10 of error_bound.hpp). For elements in the normal range of the parts.
struct PartsError {
  double relative;  ///< representation, and the pairs that are not multiplied
  double small;     ///< sigma: absolute sum of the products kept, but for that of hi and hi
  double large;     ///< m_0^2: the product of hi and hi
  double products;  ///< pairs that are multiplied
};
[[nodiscard]] PartsError parts_error(const Parts& parts);

/// phi: absolute error of an element below the normal range of the parts, in a tensor whose largest
/// element is `largest`; infinite where that one is beyond the format, so that it has no hi.
[[nodiscard]] double tensor_floor(const Parts& parts, double largest);

/// Absolute error that phi adds to one product of elements of two tensors, given their largest
/// elements: phi_x |y| + phi_y |x| + phi_x phi_y, but for floor_share(). Infinite as tensor_floor()
/// is.
[[nodiscard]] double product_floor(const Parts& parts, double largest_x, double largest_y);

/// The factor on phi that covers its share of the pairs that are dropped (1 + 4 rho_1), and of the
/// roundings of a chain whose relative error is `chain`.
[[nodiscard]] double floor_share(const Parts& parts, double chain);

}  // namespace attest
