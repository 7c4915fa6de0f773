#pragma once

#include "core/run/device.hpp"

namespace attest {

/// What a kernel may compute of one number.
enum class Elementary { exp2, natural_log, tanh };

/// y[i] = f(x[i]).
void launch_elementary(Device& device, Elementary f, const float* x, float* y, int count);

}  // namespace attest
