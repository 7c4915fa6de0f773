#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "gpu/runtime/device_buffer.hpp"

namespace attest::microbench {

/// Values that the tensor cores multiply: their power, and so the clock, depends on them.
enum class Values { normal, zero };
[[nodiscard]] constexpr const char* name_of(Values values) {
  return values == Values::normal ? "normal values" : "zeros";
}

/// `count` bf16 numbers on the GPU: of the standard normal distribution, cut to bf16, or zeros.
[[nodiscard]] inline DeviceBuffer<std::uint16_t> bf16_values(std::size_t count, Values values) {
  std::vector<std::uint16_t> host(count, 0);
  if (values == Values::normal) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::uint16_t& v : host) {
      v = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16U);
    }
  }
  DeviceBuffer<std::uint16_t> device(count);
  device.copy_from(host);
  return device;
}

}  // namespace attest::microbench
