#pragma once

#include <cstddef>
#include <vector>

namespace attest {

/// The median of some measurements, and how well it is known.
struct MedianInterval {
  double median = 0;
  double low = 0, high = 0;  ///< hold the true median with a confidence of at least 95 %
};

/// The fewest values that have an interval: of five not even the extremes hold the median with 95 %
/// confidence.
inline constexpr std::size_t fewest_values = 6;

/// No distribution is assumed: each value lies below the true median with probability 1/2 (sign
/// test). Of fewer than fewest_values the interval is everything. `values` is not empty.
[[nodiscard]] MedianInterval median_interval(std::vector<double> values);

}  // namespace attest
