#pragma once

#include <string>
#include <vector>

#include "core/attention/operation.hpp"

namespace attest {

/// An error of a point that a study may ask for, against the exact answer.
struct ErrorMetric {
  std::string name;        ///< in a study, such as `error.max_abs`
  std::string of_profile;  ///< in an ErrorProfile, such as `max_abs_error`

  /// Name in a study with the prefix of an output: `error.lse_max_abs` for `lse_`.
  [[nodiscard]] std::string with_prefix(const std::string& prefix) const {
    std::string text = name;
    return text.insert(text.find('.') + 1, prefix);
  }
};

/// One for each metric of core/records/metric.hpp, and `error.over_bound_max`. The name in a study
/// is `error.` and the metric's without the word error.
[[nodiscard]] const std::vector<ErrorMetric>& error_metrics();

/// Prefix of the names of metrics of this output: empty for the first one, which is O or dQ, so
/// that `error.rmse` is there whatever the operation; `lse_`, `dk_`, `dv_` for others.
[[nodiscard]] std::string error_prefix(const Operation& operation, OutputIndex output);
/// All names that error metrics have of outputs of any operation, `error.dk_rmse` among them.
[[nodiscard]] std::vector<std::string> error_names();

}  // namespace attest
