#include "core/base/error.hpp"
#include "core/records/hardware_counters.hpp"
#include "gpu/runtime/hardware_counters.hpp"

// In place of hardware_counters.cpp where the toolkit has no headers of CUPTI's range profiler.

namespace attest {

struct HardwareCounters::Target {};

HardwareCounters::HardwareCounters(int /*ordinal*/) {
  throw MachineError(
      "no hardware counters: this program was built without cupti_range_profiler.h; needed: CUDA "
      "12.6 or later with CUPTI");
}

HardwareCounters::~HardwareCounters() = default;

std::vector<Measurement> HardwareCounters::count(std::span<const std::string> /*names*/,
                                                 const std::function<void()>& /*before*/,
                                                 const std::function<void()>& /*work*/) {
  return {};
}

}  // namespace attest
