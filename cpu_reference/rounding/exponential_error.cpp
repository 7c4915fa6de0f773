#include "cpu_reference/rounding/exponential_error.hpp"

#include "cpu_reference/rounding/relative_error.hpp"

namespace attest {

ExponentialError exponential_error(const ExpMethod& method, const Arithmetic& arithmetic) {
  // The logarithm of 1 + e, e = argument_error x: -ln(1 - e) < 1.01 e below e = 0.01; above it the
  // weight is lost.
  return {log_of(declared_error(method.relative_error, arithmetic)),
          arithmetic.unit_roundoff + 1.01 * method.argument_error};
}

}  // namespace attest
