#include "experiments/timing/median_interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest {

MedianInterval median_interval(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  MedianInterval result{.median = (values[(n - 1) / 2] + values[n / 2]) / 2,
                        .low = 0,
                        .high = std::numeric_limits<double>::infinity()};
  if (n < fewest_values) return result;
  // outside: the chance that fewer than below + 1 values lie under the true median.
  double chance = std::exp2(-static_cast<double>(n));
  double outside = 0;
  std::size_t below = 0;
  while (outside + chance <= 0.025) {
    outside += chance;
    chance *= static_cast<double>(n - below) / static_cast<double>(below + 1);
    ++below;
  }
  result.low = values[below - 1];
  result.high = values[n - below];
  return result;
}

}  // namespace attest
