#pragma once

#include <cmath>

#include "core/base/host_device.hpp"

namespace attest {

/// |got - want| / bound, with 0 / 0 = 0. Equal infinities count as error 0, and so does NaN where
/// NaN is wanted. A NaN or an infinity that is not wanted gives +infinity.
ATTEST_HOST_DEVICE inline double error_over_bound(double got, double want, double bound) {
  if (std::isnan(want)) return std::isnan(got) ? 0.0 : static_cast<double>(HUGE_VAL);
  if (got == want) return 0.0;
  const double error = std::abs(got - want);
  if (!std::isfinite(error) || !(bound > 0.0)) return static_cast<double>(HUGE_VAL);
  return error / bound;
}

}  // namespace attest
