#pragma once

#include "core/attention/lse_form.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"
#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/relative_error.hpp"

namespace attest {

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
