#pragma once

#include "core/attention/exp_method.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"

namespace attest {

/// Error of a computed e^(a - b) in the exponent, a <= b numbers of the arithmetic: it is
/// e^(a - b + h) with |h| <= constant + per_difference (b - a), but for what underflow loses (step
/// 2 of error_bound.hpp). Of exps whose differences telescope the second parts add to one.
struct ExponentialError {
  double constant;        ///< of every exp: -ln(1 - eps)
  double per_difference;  ///< rounding of a - b, and what of the method's error grows with it
};
[[nodiscard]] ExponentialError exponential_error(const ExpMethod& method,
                                                 const Arithmetic& arithmetic);

}  // namespace attest
