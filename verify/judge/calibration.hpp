#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/records/measurement.hpp"
#include "core/run/device.hpp"
#include "core/run/kernel.hpp"

namespace attest {

struct CalibrationOptions {
  std::int64_t sets = 500;         ///< data sets a kernel and element type
  std::int64_t largest_len = 300;  ///< of queries and keys
  /// Glob over the input families. Statistics of gradients choose theirs.
  std::string families = "*";
  std::uint64_t seed = 1;
};

/// One statistic over the data sets in which it applied.
struct StatisticDistribution {
  std::string_view name;
  double threshold = 0;          ///< a correct kernel stays at or below
  std::vector<double> values{};  ///< ascending; NaN stands last
  std::int64_t alarms = 0;       ///< values that are not at or below the threshold
  [[nodiscard]] double quantile(double share) const;  ///< NaN when there are no values
};

/// The distribution of every statistic for one kernel that is taken to be correct.
struct Calibration {
  const KernelInfo* kernel = nullptr;
  ElementType element_type = ElementType::fp32;
  std::int64_t sets = 0;          ///< launched
  std::int64_t sets_alarmed = 0;  ///< with at least one alarm
  std::int64_t sets_judged = 0;   ///< with at least one statistic in scope
  std::vector<StatisticDistribution> statistics;
};

/// The statistics of an operation's errors, without values: of attention and of its gradients.
/// Empty for an operation that has none.
[[nodiscard]] std::vector<StatisticDistribution> statistics_of(const Operation& operation);

/// Launches the kernel on random data sets of every input family it can run and collects the
/// statistics. A set is a pure function of (seed, number). Sets that the kernel cannot run are
/// drawn again. `on_set` is called after each.
[[nodiscard]] Calibration calibrate(const KernelInfo& kernel, ElementType element_type,
                                    Device& device, const CalibrationOptions& options,
                                    const std::function<void()>& on_set);

/// Measurements for a record: sets, and median, 99 % point, largest value, threshold and alarms of
/// each statistic; the false-alarm rate with its upper limit at 95 % confidence.
[[nodiscard]] std::vector<Measurement> measurements_of(const Calibration& calibration);

/// Largest rate that still gives `alarms` or fewer among `sets` in one case of twenty (exact
/// binomial limit; 3 / sets where there are none).
[[nodiscard]] double upper_rate(std::int64_t alarms, std::int64_t sets);

}  // namespace attest
