#pragma once

#include <string>
#include <vector>

namespace attest {

/// An error of a point that a study may ask for, against the exact answer.
struct ErrorMetric {
  std::string name;        ///< in a study, such as `error.max_abs`
  std::string of_profile;  ///< in an ErrorProfile, such as `max_abs_error`
};

/// One for each metric of core/records/metric.hpp, and `error.over_bound_max`. The name in a study
/// is `error.` and the metric's without the word error.
[[nodiscard]] const std::vector<ErrorMetric>& error_metrics();

}  // namespace attest
