#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/records/measurement.hpp"

namespace attest {

/// The counters of one GPU, read in this process through CUPTI's range profiler. Nothing is enabled
/// but during count().
class HardwareCounters {
 public:
  /// `ordinal` is the calling thread's current device. Throws MachineError with a sentence: no
  /// CUPTI, a machine that forbids its counters, a GPU without them.
  explicit HardwareCounters(int ordinal);
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;
  ~HardwareCounters();

  /// Runs `before` and then `work` once for each pass that the counters need, and counts in `work`
  /// alone, which waits for what it launched. Other streams of this process count as well; what
  /// other processes do at the same time may or may not. Names and errors as in
  /// Device::count.
  [[nodiscard]] std::vector<Measurement> count(std::span<const std::string> names,
                                               const std::function<void()>& before,
                                               const std::function<void()>& work);

 private:
  struct Target;
  std::unique_ptr<Target> target_;
};

}  // namespace attest
