#pragma once

#include <cstddef>

#include "core/run/device.hpp"

namespace attest {

/// One thread touches the last of `bytes` of dynamic shared memory. Returns without waiting.
void launch_touch_shared(std::size_t bytes, Device& device);

/// Each block copies `words` words of shared memory that it never wrote to to[block * words].
void launch_copy_unwritten_shared(unsigned* to, int blocks, int words, Device& device);

}  // namespace attest
