#pragma once

#include <algorithm>
#include <cstdint>

#include "core/attention/layout.hpp"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// Rows to copy, in units of two bytes, whatever they hold.
struct RowCopy {
  const unsigned short* from = nullptr;
  unsigned short* to = nullptr;
  Strides from_strides{}, to_strides{};
  std::int64_t entries = 0, heads = 0, rows = 0;
  std::int64_t columns = 0;  ///< that are copied
  std::int64_t width = 0;    ///< that are written: behind what is copied come zeros
};

/// A thread a unit.
template <Executor home>
__global__ void ring_copy_rows(RowCopy c) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t all = c.entries * c.heads * c.rows * c.width;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < all; i += step) {
    const std::int64_t column = i % c.width, row = i / c.width % c.rows;
    const std::int64_t head = i / c.width / c.rows % c.heads,
                       entry = i / c.width / c.rows / c.heads;
    c.to[c.to_strides.offset(entry, head, row) + column] =
        column < c.columns ? c.from[c.from_strides.offset(entry, head, row) + column]
                           : static_cast<unsigned short>(0);
  }
}

template <Executor home>
void copy_rows(const RowCopy& c, Device& device) {
  constexpr std::int64_t threads = 256, most_blocks = 2048;
  const std::int64_t all = c.entries * c.heads * c.rows * c.width;
  if (all == 0) return;
  const std::int64_t blocks = std::min(most_blocks, (all + threads - 1) / threads);
  launch(ring_copy_rows<home>, dim3(static_cast<unsigned>(blocks)),
         dim3(static_cast<unsigned>(threads)), 0, device, c);
}

}  // namespace attest
