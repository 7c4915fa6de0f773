#include "core/records/metric.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Sum with the lost low parts kept apart [Neumaier 1974]: error of about one rounding, for any
/// number of terms. Terms that are not finite go to the plain sum, where IEEE arithmetic gives the
/// infinity or NaN that they deserve.
class CompensatedSum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    if (std::isfinite(next))
      lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  [[nodiscard]] double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

void require_same_shape(const Tensor<double>& want, const Tensor<float>& got) {
  if (want.shape() != got.shape())
    throw InvalidInput(fmt::format("metric: the shapes differ: want [{}], got [{}]",
                                   fmt::join(want.shape(), ", "), fmt::join(got.shape(), ", ")));
}

Shape coordinate(const Shape& shape, std::int64_t index) {
  Shape at{};
  for (std::size_t axis = shape.size(); axis-- > 0; index /= shape[axis])
    at[axis] = index % shape[axis];
  return at;
}

/// Calls visit(index, want, got) for each element, in memory order.
template <typename Visit>
void for_each_pair(const Tensor<double>& want, const Tensor<float>& got, const Visit& visit) {
  require_same_shape(want, got);
  for (std::size_t i = 0; i < want.values().size(); ++i)
    visit(static_cast<std::int64_t>(i), want.values()[i], got.values()[i]);
}

/// The largest value of measure(want, got) and where it first occurs; the first NaN beats
/// everything.
template <typename Measure>
MetricValue largest(const Tensor<double>& want, const Tensor<float>& got, const Measure& measure) {
  double worst = -1;
  std::int64_t worst_index = 0;
  for_each_pair(want, got, [&](std::int64_t index, double w, float g) {
    const double value = measure(w, g);
    // Not `value > worst`: that is false for NaN.
    if (!std::isnan(worst) && !(value <= worst)) {
      worst = value;
      worst_index = index;
    }
  });
  if (want.size() == 0) return {not_a_number, std::nullopt};
  return {worst, coordinate(want.shape(), worst_index)};
}

/// Euclidean norm of select(want, got) over all elements: scaled by the largest, so that no square
/// overflows.
template <typename Select>
double norm(const Tensor<double>& want, const Tensor<float>& got, const Select& select) {
  double scale = 0;
  for_each_pair(want, got, [&](std::int64_t, double w, float g) {
    const double size = std::abs(select(w, g));
    if (!std::isnan(scale) && !(size <= scale)) scale = size;
  });
  if (scale == 0 || !std::isfinite(scale)) return scale;
  CompensatedSum squares;
  for_each_pair(want, got, [&](std::int64_t, double w, float g) {
    const double part = select(w, g) / scale;
    squares.add(part * part);
  });
  return scale * std::sqrt(squares.value());
}

MetricValue max_abs_error(const Tensor<double>& want, const Tensor<float>& got, ElementType) {
  return largest(want, got, [](double w, float g) { return std::abs(signed_error(w, g)); });
}

MetricValue rmse(const Tensor<double>& want, const Tensor<float>& got, ElementType) {
  const double size = norm(want, got, signed_error);
  if (want.size() == 0) return {not_a_number, std::nullopt};
  return {size / std::sqrt(static_cast<double>(want.size())), std::nullopt};
}

MetricValue relative_l2(const Tensor<double>& want, const Tensor<float>& got, ElementType) {
  const double error = norm(want, got, signed_error);
  const double size = norm(want, got, [](double w, float) { return std::isfinite(w) ? w : 0.0; });
  if (want.size() == 0) return {not_a_number, std::nullopt};
  if (error == 0) return {0, std::nullopt};  // also when want is all 0
  return {error / size, std::nullopt};
}

MetricValue mean_signed_error(const Tensor<double>& want, const Tensor<float>& got, ElementType) {
  CompensatedSum sum;
  for_each_pair(want, got, [&](std::int64_t, double w, float g) { sum.add(signed_error(w, g)); });
  return {sum.value() / static_cast<double>(want.size()), std::nullopt};  // 0 / 0 is NaN
}

/// Student's t of the mean of select(want, got), each row (the last axis) one observation: the
/// errors of a row share its normaliser and are not independent. (Rows that copy the same few
/// values are not either; then t says too much.)
template <typename Select>
MetricValue t_over_rows(const Tensor<double>& want, const Tensor<float>& got,
                        const Select& select) {
  const std::int64_t width = std::max<std::int64_t>(want.shape()[3], 1);
  const auto rows = static_cast<double>(want.size() / width);
  std::vector<CompensatedSum> sums(static_cast<std::size_t>(want.size() / width));
  CompensatedSum all, squares;
  for_each_pair(want, got, [&](std::int64_t index, double w, float g) {
    const double value = select(w, g);
    sums[static_cast<std::size_t>(index / width)].add(value);
    all.add(value);
  });
  const double mean = all.value() / static_cast<double>(want.size());
  if (rows > 0 && !std::isfinite(mean)) return {mean, std::nullopt};
  if (rows < 2) return {not_a_number, std::nullopt};  // one row does not say how rows scatter
  if (mean == 0) return {0, std::nullopt};
  for (const CompensatedSum& sum : sums) {
    const double distance = sum.value() / static_cast<double>(width) - mean;
    squares.add(distance * distance);
  }
  return {mean / std::sqrt(squares.value() / (rows - 1) / rows), std::nullopt};
}

MetricValue bias(const Tensor<double>& want, const Tensor<float>& got, ElementType) {
  return t_over_rows(want, got, signed_error);
}

MetricValue outward_bias(const Tensor<double>& want, const Tensor<float>& got, ElementType) {
  return t_over_rows(want, got, [](double w, float g) {
    const double error = signed_error(w, g);
    return w > 0 ? error : w < 0 ? -error : error - error;  // at 0 no direction is outward
  });
}

MetricValue max_ulp_error(const Tensor<double>& want, const Tensor<float>& got, ElementType type) {
  return largest(want, got, [type](double w, float g) { return ulp_distance(type, w, g); });
}

MetricValue share_within_1_ulp(const Tensor<double>& want, const Tensor<float>& got,
                               ElementType type) {
  double within = 0;
  for_each_pair(want, got, [&](std::int64_t, double w, float g) {
    const double distance = ulp_distance(type, w, g);
    within += std::isnan(distance) ? not_a_number : distance <= 1 ? 1 : 0;
  });
  return {within / static_cast<double>(want.size()), std::nullopt};
}

/// Place of a value among all values of the format, in order; both zeros are 0.
std::int64_t ordinal(ElementType type, double value) {
  const auto magnitude =
      static_cast<std::int64_t>(encode(type, static_cast<float>(std::abs(value))));
  return std::signbit(value) ? -magnitude : magnitude;
}

}  // namespace

const std::vector<Metric>& all_metrics() {
  static const std::vector<Metric> metrics{
      {"max_abs_error", "value", "largest |got - want| and where it is", max_abs_error},
      {"rmse", "value", "square root of the mean squared error", rmse},
      {"relative_l2", "1", "norm of the error over the norm of want; infinite when only want is 0",
       relative_l2},
      {"mean_signed_error", "value", "mean of got - want: what does not cancel is bias",
       mean_signed_error},
      {"bias", "1", "mean of got - want over its standard error, rows being the observations",
       bias},
      {"outward_bias", "1",
       "the same of errors counted away from zero: negative is truncation, or a row sum too large",
       outward_bias},
      {"max_ulp_error", "ulp", "most steps from the correctly rounded result", max_ulp_error},
      {"share_within_1_ulp", "1",
       "part of the elements at most one step from the correctly rounded result",
       share_within_1_ulp},
  };
  return metrics;
}

const Metric& metric(std::string_view name) {
  const auto& metrics = all_metrics();
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  if (found != metrics.end()) return *found;
  std::vector<std::string_view> names;
  for (const Metric& m : metrics) names.push_back(m.name);
  throw InvalidInput(
      fmt::format("metric '{}' is unknown; known: {}", name, fmt::join(names, ", ")));
}

std::vector<Measurement> measure_all(const Tensor<double>& want, const Tensor<float>& got,
                                     ElementType type) {
  std::vector<Measurement> measurements;
  for (const Metric& m : all_metrics())
    measurements.push_back({m.name, m.compute(want, got, type).value, m.unit});
  return measurements;
}

double signed_error(double want, float got) {
  const double value = got;
  if (std::isnan(want) && std::isnan(value)) return 0;
  if (want == value) return 0;  // equal infinities too: their difference would be NaN
  return value - want;
}

double ulp_distance(ElementType type, double want, float got) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : not_a_number;
  if (round_to(type, got) != static_cast<double>(got))
    throw InvalidInput(
        fmt::format("ulp distance: got {} is no {} value", got, format_of(type).name));
  // In double: exact, and a caller's comparison with NaN stays possible.
  return static_cast<double>(std::abs(ordinal(type, got) - ordinal(type, round_to(type, want))));
}

UlpHistogram ulp_histogram(const Tensor<double>& want, const Tensor<float>& got, ElementType type) {
  UlpHistogram histogram;
  auto& buckets = histogram.buckets;
  for_each_pair(want, got, [&](std::int64_t, double w, float g) {
    const double distance = ulp_distance(type, w, g);
    if (std::isnan(distance)) {
      ++histogram.disagreeing_nan;
      return;
    }
    // Each bucket ends at twice the end of the one before, from 1 on.
    while (buckets.empty() || buckets.back().last < distance) {
      const double first = buckets.empty() ? 0 : buckets.back().last + 1;
      const double last = buckets.size() < 2 ? first : buckets.back().last * 2;
      buckets.push_back({first, last, 0});
    }
    const auto bucket =
        std::ranges::lower_bound(buckets, distance, {}, &UlpHistogram::Bucket::last);
    ++bucket->count;
  });
  return histogram;
}

}  // namespace attest
