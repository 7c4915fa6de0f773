#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/tensor.hpp"
#include "core/records/measurement.hpp"

namespace attest {

/// Value of a metric, and where it was found.
struct MetricValue {
  double value;
  /// [batch, head, row, dim] of a maximum or of the NaN; metrics over all elements have none.
  std::optional<Shape> at;
};

/// A figure that says how far `got` is from `want`, two tensors of one shape. The rules are the
/// same for all of them:
/// - NaN where a number is due, or a number where NaN is due, makes the metric NaN, whatever the
///   rest is;
/// - NaN where NaN is due, and equal infinities (the LSE of empty rows), are no error and do not
///   count in a norm;
/// - an infinity where something else is due is an infinite error;
/// - empty tensors give NaN: nothing was measured.
struct Metric {
  std::string name;
  std::string unit;  ///< `value`: that of the tensors; `ulp`; `1` for a ratio
  std::string summary;
  /// `type` is the format of `got`; only ulp metrics use it. Throws InvalidInput when the shapes
  /// differ.
  std::function<MetricValue(const Tensor<double>& want, const Tensor<float>& got, ElementType type)>
      compute;
};

[[nodiscard]] const std::vector<Metric>& all_metrics();
/// Metric of a name. Throws InvalidInput listing the known names.
[[nodiscard]] const Metric& metric(std::string_view name);
/// Every metric of the table.
[[nodiscard]] std::vector<Measurement> measure_all(const Tensor<double>& want,
                                                   const Tensor<float>& got, ElementType type);

/// got - want under the rules above: 0 for agreeing NaN and infinities, NaN when one side only is
/// NaN, infinite when an infinity disagrees (its sign: that of got - want).
[[nodiscard]] double signed_error(double want, float got);

/// Steps between neighbouring values of the format from `want`, correctly rounded, to `got`. Both
/// zeros are one value; infinity is one step past the largest finite value. 0 when both are NaN,
/// NaN when one is. `got` must be a value of the format, otherwise throws InvalidInput.
[[nodiscard]] double ulp_distance(ElementType type, double want, float got);

/// Counts of elements by ulp_distance.
struct UlpHistogram {
  struct Bucket {
    double first, last;  ///< inclusive
    std::int64_t count;
  };
  std::vector<Bucket> buckets;  ///< 0, 1, 2, 3-4, 5-8, ...: up to the largest distance that occurs
  std::int64_t disagreeing_nan = 0;  ///< elements where one side only is NaN
};
[[nodiscard]] UlpHistogram ulp_histogram(const Tensor<double>& want, const Tensor<float>& got,
                                         ElementType type);

}  // namespace attest
