#pragma once

#include <cstdint>

#include "core/attention/element_type.hpp"
#include "core/attention/layout.hpp"

namespace attest {

/// A tensor [batch, head, row, dim] in device memory, and the boxes in which the copy engine of
/// sm_90 moves it: 128 bytes of columns and `box_rows` rows of one head, 128-byte swizzle.
struct BoxedTensor {
  const void* first = nullptr;  ///< aligned to 16 bytes
  ElementType type = ElementType::bf16;
  std::int64_t batch = 1, heads = 1, rows = 1, columns = 1;
  Strides strides;  ///< of dimensions longer than 1: multiples of 16 bytes, below 2^40 bytes
  std::int64_t box_rows = 64;  ///< up to 256
};

}  // namespace attest
