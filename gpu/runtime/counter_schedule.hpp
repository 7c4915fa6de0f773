#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/records/hardware_counters.hpp"
#include "core/records/measurement.hpp"

namespace attest {

/// Counters of a chip by the pass in which they are read, and the meaning of their readings: the
/// half of CUPTI that needs no GPU.
class CounterSchedule {
 public:
  /// `chip`: as CUPTI calls it, such as `GH100`. `available`: CUPTI's picture of what the GPU at
  /// hand offers; empty: all that the chip has. Throws InvalidInput for a metric that the chip does
  /// not have, with near names, and MachineError where CUPTI is missing.
  CounterSchedule(const std::string& chip, std::span<const std::uint8_t> available,
                  std::vector<HardwareCounter> counters);
  CounterSchedule(const CounterSchedule&) = delete;
  CounterSchedule& operator=(const CounterSchedule&) = delete;
  ~CounterSchedule();

  /// Number of times that the work must run.
  [[nodiscard]] std::size_t passes() const;
  /// Names of CUPTI's metrics, each once; valid as long as this lives.
  [[nodiscard]] std::vector<const char*> metrics() const;
  /// Configuration of CUPTI's range profiler.
  [[nodiscard]] const std::vector<std::uint8_t>& config_image() const;
  /// Measurements of the first range of decoded counter data.
  [[nodiscard]] std::vector<Measurement> measurements(
      std::span<const std::uint8_t> counter_data) const;

 private:
  struct Host;
  std::unique_ptr<Host> host_;
};

/// Our unit for CUPTI's: `B` for `byte`, `%` for `percent`, `1` for none; others as they are.
[[nodiscard]] std::string counter_unit(const std::string& cupti_unit);

}  // namespace attest
