#pragma once

#include <cuda.h>

#include <cstdint>

#include "core/element_type.hpp"
#include "core/layout.hpp"

namespace attest {

/// A tensor [batch, head, row, dim] in device memory, and the boxes in which the copy engine moves
/// it: 64 columns and `box_rows` rows of one head, 128-byte swizzle.
struct BoxedTensor {
  const void* first = nullptr;  ///< aligned to 16 bytes
  ElementType type = ElementType::bf16;
  std::int64_t batch = 1, heads = 1, rows = 1, columns = 1;
  Strides strides;  ///< of dimensions longer than 1: multiples of 16 bytes, below 2^40 bytes
  std::int64_t box_rows = 64;  ///< up to 256
};

/// The map of the tensor for gpu/primitives/tma.cuh: 64 columns of a 16-bit format are 128 bytes;
/// of fp32, 32 columns. Columns past the tensor's arrive as 0. Throws MachineError when the driver
/// has no such maps or refuses this one.
[[nodiscard]] CUtensorMap tensor_map(const BoxedTensor& tensor);

}  // namespace attest
