#include "cpu_reference/forward/error_profile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/base/error_ratio.hpp"
#include "core/records/metric.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Smallest value that at least `share` of the values do not exceed; `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

void add_ulp_shares(const Tensor<double>& want, const Tensor<float>& got, ElementType type,
                    std::vector<Measurement>& measurements) {
  const UlpHistogram histogram = ulp_histogram(want, got, type);
  const auto& shares = ulp_shares();
  std::vector<std::int64_t> counts(shares.size());
  for (const UlpHistogram::Bucket& bucket : histogram.buckets) {
    const auto share = std::ranges::lower_bound(shares, bucket.last, {}, &UlpShare::last);
    counts[static_cast<std::size_t>(share - shares.begin())] += bucket.count;
  }
  counts.back() += histogram.disagreeing_nan;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    measurements.push_back({std::string(shares[i].name),
                            static_cast<double>(counts[i]) / static_cast<double>(want.size()),
                            "1"});
  }
}

/// Adds the floor of the format: what remains of a kernel that makes no error but to round its
/// output.
void add_floor(const Tensor<double>& want, ElementType type,
               std::vector<Measurement>& measurements) {
  Tensor<float> rounded(want.shape());
  std::ranges::transform(want.values(), rounded.values().begin(), [&](double value) {
    return std::isfinite(value) ? static_cast<float>(round_to(type, value))
                                : static_cast<float>(value);
  });
  for (const char* name : {"rmse", "mean_signed_error", "bias", "outward_bias"}) {
    const Metric& one = metric(name);
    measurements.push_back(
        {"rounded_" + one.name, one.compute(want, rounded, type).value, one.unit});
  }
}

void add_ratios(const Tensor<double>& want, const Tensor<float>& got, const Tensor<double>& bound,
                std::vector<Measurement>& measurements) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < want.values().size(); ++i) {
    const double limit = bound.values()[i];
    if (limit == infinity) continue;
    ratios.push_back(error_over_bound(got.values()[i], want.values()[i], limit));
  }
  const auto vacuous = static_cast<double>(want.size() - std::ssize(ratios));
  measurements.push_back({"vacuous", vacuous, "1"});
  std::ranges::sort(ratios);
  const auto add = [&](const char* name, double share) {
    const double value =
        ratios.empty() ? std::numeric_limits<double>::quiet_NaN() : quantile(ratios, share);
    measurements.push_back({name, value, "1"});
  };
  add("error_over_bound_max", 1.0);
  add("error_over_bound_p99", 0.99);
  add("error_over_bound_median", 0.5);
}

}  // namespace

const std::vector<UlpShare>& ulp_shares() {
  static const std::vector<UlpShare> shares{{"ulp_0", 0},      {"ulp_1", 1},
                                            {"ulp_2", 2},      {"ulp_3_to_4", 4},
                                            {"ulp_5_to_8", 8}, {"ulp_more", infinity}};
  return shares;
}

bool ErrorProfile::has(std::string_view name) const {
  return find_measurement(measurements, name) != nullptr;
}

double ErrorProfile::value(std::string_view name) const {
  const Measurement* found = find_measurement(measurements, name);
  if (found == nullptr)
    throw std::logic_error("error profile: no measurement " + std::string(name));
  return found->value;
}

ErrorProfile error_profile(const Tensor<double>& want, const Tensor<float>& got, ElementType type,
                           const Tensor<double>* bound) {
  ErrorProfile profile;
  profile.measurements = {{"elements", static_cast<double>(want.size()), "1"}};
  for (Measurement& m : measure_all(want, got, type)) profile.measurements.push_back(std::move(m));
  add_ulp_shares(want, got, type, profile.measurements);
  add_floor(want, type, profile.measurements);
  if (bound != nullptr) add_ratios(want, got, *bound, profile.measurements);
  if (const auto at = metric("max_abs_error").compute(want, got, type).at) {
    const auto [b, h, n, d] = *at;
    profile.largest_at = *at;
    profile.largest_got = got.at(b, h, n, d);
    profile.largest_want = want.at(b, h, n, d);
  }
  return profile;
}

}  // namespace attest
