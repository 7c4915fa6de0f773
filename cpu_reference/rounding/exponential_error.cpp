#include "cpu_reference/rounding/exponential_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "cpu_reference/rounding/relative_error.hpp"

namespace attest {
namespace {

/// Largest logarithm of a result within 1 +- (eps + a x) less that of eps, per x in (0, largest]:
/// -ln(1 - a x / (1 - eps)) / x, which grows with x.
double log_per_argument(const ExpMethod& method, double largest) {
  const double share = largest * method.argument_error / (1 - method.relative_error);
  // A result that may be 0: so much that nothing is claimed, and still 0 times a difference of 0.
  if (!(share < 1)) return std::numeric_limits<float>::max();
  return log_of(share) / largest;
}

}  // namespace

ExponentialError exponential_error(const ExpMethod& method, const Arithmetic& arithmetic) {
  const double u = arithmetic.unit_roundoff;
  // Past ln 2^-150 a result is 0 or lost in underflow; 1 more for the rounding of the difference.
  const double largest = 1 + std::numbers::ln2 - std::log(arithmetic.min_subnormal);
  // 1.01 is the logarithm's share while the method's error stays below 0.01, as it does for every
  // named method.
  const double of_method =
      std::max(1.01 * method.argument_error, (1 + 2 * u) * log_per_argument(method, largest));
  return {log_of(declared_error(method.relative_error, arithmetic)), u + of_method};
}

}  // namespace attest
