#pragma once

#include "core/attention/exp_method.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"
#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/relative_error.hpp"

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

/// Error of m + ln l before the last addition rounds it, for a computed maximum m and sum l: at
/// most logarithm |ln l| + per_maximum |m| (step 7 of error_bound.hpp).
struct LogSumError {
  double logarithm;
  double per_maximum;  ///< 0 where m is a natural logarithm
};
/// `log_error`: relative error of the logarithm, as declared.
[[nodiscard]] inline LogSumError log_sum_error(double log_error, LseForm form,
                                               const Arithmetic& arithmetic) {
  LogSumError error{declared_error(log_error, arithmetic), 0};
  if (form == LseForm::log2) {
    // fl(log2 e), the scale times it, fl(ln 2) and its product.
    error.per_maximum = chain_error(4, arithmetic.unit_roundoff);
    // ln 2 times fl(m + log2 l): two roundings more of ln l.
    error.logarithm += 2 * arithmetic.unit_roundoff;
  }
  return error;
}

}  // namespace attest
