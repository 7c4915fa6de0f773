#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// A measurement that the GPU's counters give: `metric`, or `metric` over `per`, or its share of
/// `metric` and `rest` together. Metrics are named as CUPTI and Nsight Compute name them, and are
/// those of sm_90.
struct HardwareCounter {
  std::string name{};    ///< of the measurement
  std::string unit{};    ///< `%`: a quotient is multiplied by 100; empty: the one CUPTI gives
  std::string metric{};  ///< with its rollup, such as `dram__bytes_read.sum`
  std::string per{};     ///< empty: nothing
  std::string rest{};    ///< empty: nothing
  std::string group{};
};

/// Counters of all groups: `dram`, `l2`, `tensor`, `shared`, `occupancy`, `stalls`.
[[nodiscard]] std::span<const HardwareCounter> all_hardware_counters();
/// Names of groups, then of counters.
[[nodiscard]] std::vector<std::string> hardware_counter_names();

/// Counters that the names stand for, each once, in the order of the names: a group, one of its
/// counters, or a metric of CUPTI, which is any name with two underscores in it and whose spelling
/// only the machine can check. Throws InvalidInput that offers near names.
[[nodiscard]] std::vector<HardwareCounter> hardware_counters_of(std::span<const std::string> names);

/// Value of a counter from the values of `metric`, `per` and `rest`, of which those without a name
/// do not matter. 0 / 0 is NaN.
[[nodiscard]] double value_of(const HardwareCounter& counter, double metric, double per,
                              double rest);

}  // namespace attest
