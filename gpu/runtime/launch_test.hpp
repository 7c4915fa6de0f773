#pragma once

#include <cstddef>

#include "core/device.hpp"

namespace attest {

/// One thread touches the last of `bytes` of dynamic shared memory. Returns without waiting.
void launch_touch_shared(std::size_t bytes, Device& device);

}  // namespace attest
