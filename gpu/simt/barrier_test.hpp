#pragma once

#include "core/run/device.hpp"

namespace attest {

void launch_rotate(Device& device, int* values, int blocks, int threads, int rounds);

}  // namespace attest
