#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/tensor.hpp"
#include "core/records/measurement.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {

/// The figures of one output tensor, O or LSE, against the exact answer.
struct ErrorProfile {
  /// `elements`, every metric of core/records/metric.hpp, the shares of ulp_shares(),
  /// `rounded_rmse`, `rounded_mean_signed_error`, `rounded_bias` and `rounded_outward_bias` of the
  /// exact answer rounded once to the output's format, which no kernel can do without, and where
  /// there is a bound `vacuous` and `error_over_bound_max`, `_p99`, `_median`.
  std::vector<Measurement> measurements;
  Shape largest_at{};  ///< of the largest error, or of the first NaN that should be none
  double largest_got = 0, largest_want = 0;

  [[nodiscard]] bool has(std::string_view name) const;
  /// Value of a measurement. Throws std::logic_error for a name that the profile has not.
  [[nodiscard]] double value(std::string_view name) const;
};

/// `bound` null: of a kernel that declares no roundings. Ratios are over the elements whose bound
/// is finite; p99 is the smallest ratio that at least 99 % of them do not exceed, the median
/// likewise. `type` is the format of `got`. Throws InvalidInput when the shapes differ.
[[nodiscard]] ErrorProfile error_profile(const Tensor<double>& want, const Tensor<float>& got,
                                         ElementType type, const Tensor<double>* bound = nullptr);

/// Names of the measurements that hold the share of elements 0, 1, 2, 3-4, 5-8 and more steps from
/// the correctly rounded result.
struct UlpShare {
  std::string_view name;  ///< `ulp_0`, ..., `ulp_3_to_4`, ..., `ulp_more`
  double last;            ///< largest distance that counts
};
[[nodiscard]] const std::vector<UlpShare>& ulp_shares();

}  // namespace attest
