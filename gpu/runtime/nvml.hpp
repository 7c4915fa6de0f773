#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/run/device.hpp"

namespace attest {

/// One line why NVML, which comes with the driver, could not be opened; empty when it could.
/// $ATTEST_NVML names another file.
[[nodiscard]] const std::string& why_no_nvml();

/// NVML's readings of the GPU with this PCI bus id, such as `0000:1b:00.0`: CUDA's numbers mean
/// other GPUs where CUDA_VISIBLE_DEVICES is set. Power is the mean over the last second on sm_80
/// and later. What the GPU does not tell is NaN. Nothing where NVML is missing or does not know it.
[[nodiscard]] std::optional<DeviceState> nvml_state(const std::string& pci_bus_id);

/// Device::throttled_ms of that GPU; empty too where its driver counts nothing.
[[nodiscard]] std::map<std::string, double> nvml_throttled_ms(const std::string& pci_bus_id);

/// NVML's bits in words, e.g. `power cap`. An idle GPU is not throttled, and neither are clocks
/// that somebody asked for.
[[nodiscard]] std::vector<std::string> throttle_reasons(std::uint64_t bits);

}  // namespace attest
