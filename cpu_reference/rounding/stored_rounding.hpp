#pragma once

#include <cmath>
#include <limits>

#include "core/attention/element_type.hpp"
#include "core/base/host_device.hpp"

namespace attest {

/// One rounding to nearest into a format that is narrower than the arithmetic (step 6 of
/// error_bound.hpp).
struct StoredRounding {
  double relative;  ///< u of the format
  double absolute;  ///< half its smallest subnormal
  double overflow;  ///< smaller numbers stay finite
};
[[nodiscard]] inline StoredRounding stored_rounding(const ElementFormat& format) {
  // From max + half an ulp on the result is infinity; half an ulp of the largest number is more
  // than u / 2 of it.
  return {format.unit_roundoff, format.min_subnormal / 2,
          format.max_finite * (1 + format.unit_roundoff / 2)};
}

/// Distance from x of a computed number that was within `before` of x and then rounded; infinite
/// where it can overflow. Number: double or a multiprecision type.
template <class Number>
ATTEST_HOST_DEVICE Number stored_error(const StoredRounding& rounding, const Number& x,
                                       const Number& before) {
  using std::abs;
  const Number largest = abs(x) + before;
  if (!(largest < rounding.overflow)) return std::numeric_limits<double>::infinity();
  return before + rounding.relative * largest + rounding.absolute;
}

}  // namespace attest
