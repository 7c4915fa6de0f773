#include "gpu/runtime/nvml.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "gpu/runtime/shared_library.hpp"

// The toolkit brings no nvml.h to every machine. What is declared here is NVML's documented C
// interface, which the driver keeps stable [NVML API reference].

namespace attest {
namespace {

using NvmlDevice = void*;
constexpr int nvml_success = 0, nvml_clock_sm = 1, nvml_clock_memory = 2, nvml_gpu_temperature = 0;

/// nvmlFieldValue_t. Of its union only the member that the counters below have.
struct NvmlFieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, code;
  unsigned long long value;
};
constexpr int nvml_unsigned_long_long = 3;

/// NVML_FI_DEV_PERF_POLICY_*: nanoseconds during which a policy held the clocks below what was
/// asked for. The newer NVML_FI_DEV_CLOCKS_EVENT_REASON_* tell software's heat from the hardware's,
/// but drivers 570 and 580 number them differently.
constexpr std::array<std::pair<unsigned, const char*>, 4> policies{
    {{74, "power cap"}, {75, "heat"}, {76, "in step with other GPUs"}, {77, "board limit"}}};

struct Nvml {
  SharedLibrary library{"libnvidia-ml.so.1", "ATTEST_NVML", {"/usr/lib/x86_64-linux-gnu"}};
  std::string problem = library.why_missing();
  int (*device_of)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;          // MHz
  int (*power)(NvmlDevice, unsigned*) = nullptr;               // mW
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;    // degrees Celsius
  int (*throttle)(NvmlDevice, unsigned long long*) = nullptr;  // bits
  int (*fields)(NvmlDevice, int, NvmlFieldValue*) = nullptr;   // null: a driver without it

  Nvml() {
    if (!problem.empty()) return;
    int (*start)() = nullptr;
    find(start, "nvmlInit_v2");
    find(device_of, "nvmlDeviceGetHandleByPciBusId_v2");
    find(clock, "nvmlDeviceGetClockInfo");
    find(power, "nvmlDeviceGetPowerUsage");
    find(temperature, "nvmlDeviceGetTemperature");
    find(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
    fields = reinterpret_cast<decltype(fields)>(library.function("nvmlDeviceGetFieldValues"));
    if (!problem.empty()) return;
    if (const int code = start(); code != nvml_success) {
      problem = fmt::format("nvmlInit failed with error {} ({})", code, library.path());
    }
  }

 private:
  template <typename Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(library.function(name));
    if (function == nullptr) problem = fmt::format("{} has no function {}", library.path(), name);
  }
};

const Nvml& nvml() {
  static const Nvml opened;
  return opened;
}

std::optional<std::vector<std::string>> reasons_now(const Nvml& library, NvmlDevice device) {
  unsigned long long bits = 0;
  if (library.throttle(device, &bits) != nvml_success) return std::nullopt;
  return throttle_reasons(bits);
}

/// Null: there is no NVML, or it knows no such GPU.
NvmlDevice device_of(const std::string& pci_bus_id) {
  NvmlDevice device = nullptr;
  if (!nvml().problem.empty() || nvml().device_of(pci_bus_id.c_str(), &device) != nvml_success)
    return nullptr;
  return device;
}

}  // namespace

const std::string& why_no_nvml() {
  return nvml().problem;
}

std::optional<DeviceState> nvml_state(const std::string& pci_bus_id) {
  const Nvml& library = nvml();
  NvmlDevice const device = device_of(pci_bus_id);
  if (device == nullptr) return std::nullopt;
  const auto ask = [](auto function, auto... arguments) {
    unsigned value = 0;
    return function(arguments..., &value) == nvml_success
               ? static_cast<double>(value)
               : std::numeric_limits<double>::quiet_NaN();
  };
  return DeviceState{.sm_clock_mhz = ask(library.clock, device, nvml_clock_sm),
                     .memory_clock_mhz = ask(library.clock, device, nvml_clock_memory),
                     .power_w = ask(library.power, device) / 1000,
                     .temperature_c = ask(library.temperature, device, nvml_gpu_temperature),
                     .throttle_reasons = reasons_now(library, device)};
}

std::map<std::string, double> nvml_throttled_ms(const std::string& pci_bus_id) {
  std::map<std::string, double> ms;
  NvmlDevice const device = device_of(pci_bus_id);
  std::array<NvmlFieldValue, policies.size()> values{};  // all in one call
  for (std::size_t i = 0; i < policies.size(); ++i) values[i].field = policies[i].first;
  if (device == nullptr || nvml().fields == nullptr ||
      nvml().fields(device, static_cast<int>(values.size()), values.data()) != nvml_success) {
    return ms;
  }
  for (std::size_t i = 0; i < policies.size(); ++i) {
    if (values[i].code != nvml_success || values[i].type != nvml_unsigned_long_long) continue;
    ms[policies[i].second] = static_cast<double>(values[i].value) * 1e-6;
  }
  return ms;
}

std::vector<std::string> throttle_reasons(std::uint64_t bits) {
  constexpr std::array<std::pair<std::uint64_t, std::string_view>, 9> words{
      {{0x1, ""},  // idle
       {0x2, ""},  // application clocks
       {0x4, "power cap"},
       {0x8, "hardware slowdown"},
       {0x10, "in step with other GPUs"},
       {0x20, "heat, software"},
       {0x40, "heat, hardware"},
       {0x80, "power brake"},
       {0x100, ""}}};  // display clocks
  std::vector<std::string> reasons;
  for (const auto& [bit, word] : words) {
    if ((bits & bit) != 0 && !word.empty()) reasons.emplace_back(word);
    bits &= ~bit;
  }
  if (bits != 0) reasons.push_back(fmt::format("unknown reason {:#x}", bits));
  return reasons;
}

}  // namespace attest
