#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// A number with its unit. `unit` is `1` for a ratio or a count.
struct Measurement {
  std::string name{};
  double value = 0;  ///< may be NaN or infinite
  std::string unit{};
};

/// The measurement of that name, nullptr if there is none.
[[nodiscard]] inline const Measurement* find_measurement(
    const std::vector<Measurement>& measurements, std::string_view name) {
  const auto found = std::ranges::find(measurements, name, &Measurement::name);
  return found == measurements.end() ? nullptr : &*found;
}

}  // namespace attest
