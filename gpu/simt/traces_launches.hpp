#pragma once

#include "core/run/device.hpp"

namespace attest::simt {

/// True if the device traces launches instead of checking them. Throws std::logic_error when
/// `device` is not the executor's.
[[nodiscard]] bool traces_launches(Device& device);

}  // namespace attest::simt
