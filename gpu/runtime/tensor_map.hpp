#pragma once

#include <cuda.h>

#include <string>

#include "core/attention/boxed_tensor.hpp"

namespace attest {

/// The map of the tensor for gpu/primitives/tma.cuh: 64 columns of a 16-bit format are 128 bytes;
/// of fp32, 32 columns. Columns past the tensor's arrive as 0. Throws MachineError when the driver
/// has no such maps or refuses this one.
[[nodiscard]] CUtensorMap tensor_map(const BoxedTensor& tensor);

/// One line why kernels that take Hopper's own instructions cannot run; empty where they can. They
/// are built for sm_90a, which runs on compute capability 9.0 and on nothing newer.
[[nodiscard]] std::string why_not_hopper();

}  // namespace attest
