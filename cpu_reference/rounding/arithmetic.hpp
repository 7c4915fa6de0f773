#pragma once

namespace attest {

/// The arithmetic between the points that a plan names: rounds to nearest.
struct Arithmetic {
  double unit_roundoff;
  double min_normal;  ///< results below may be flushed to zero
  double min_subnormal;
  double max_finite;
};
inline constexpr Arithmetic fp32_arithmetic{0x1p-24, 0x1p-126, 0x1p-149, 0x1.fffffep127};
inline constexpr Arithmetic fp64_arithmetic{0x1p-53, 0x1p-1022, 0x1p-1074, 0x1.fffffffffffffp1023};

/// Loss of results below the normal range besides their relative roundings (step 9 of
/// error_bound.hpp).
struct Underflow {
  double of_result;         ///< absolute error of one result
  double results_per_term;  ///< of a sum of products that lose it: the product, and the sum of it
                            ///< where that is flushed; otherwise a subnormal sum is exact
};
[[nodiscard]] constexpr Underflow underflow_of(const Arithmetic& arithmetic,
                                               bool flushes_subnormals) {
  if (flushes_subnormals) return {arithmetic.min_normal, 2};
  return {arithmetic.min_subnormal, 1};
}

}  // namespace attest
