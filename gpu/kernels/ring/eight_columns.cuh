#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/primitives/cuda_type.cuh"

namespace attest {

inline constexpr int row_columns = 8;       ///< of a thread: 16 bytes
inline constexpr int most_ring_parts = 96;  ///< what parameters of a kernel have room for

/// Threads that have eight columns of a row each: x along a row of `pitch` columns, y along the
/// rows, and a block's y along the heads, as many as a grid takes. No index needs a division.
struct RowThreads {
  dim3 grid, block;

  RowThreads(std::int64_t heads, std::int64_t rows, std::int64_t pitch) {
    constexpr unsigned threads = 256, most_heads = 65535;
    block.x = static_cast<unsigned>(pitch / row_columns);
    block.y = std::max(1U, threads / block.x);
    grid.x = static_cast<unsigned>((rows + block.y - 1) / block.y);
    grid.y = static_cast<unsigned>(std::min<std::int64_t>(heads, most_heads));
  }
};

/// Eight columns of a row, of which the first `count` are there.
template <typename T>
struct EightColumns {
  uint4 bits{};

  __device__ void load(const T* from, std::int64_t count) {
    if (count >= row_columns) {
      bits = *reinterpret_cast<const uint4*>(from);
      return;
    }
#pragma unroll
    for (int c = 0; c < row_columns; ++c) {
      if (c < count) (*this)[c] = from[c];
    }
  }
  __device__ T& operator[](int c) {
    return reinterpret_cast<T*>(&bits)[c];
  }
  __device__ void store(T* to, std::int64_t count) {
    if (count >= row_columns) {
      *reinterpret_cast<uint4*>(to) = bits;
      return;
    }
#pragma unroll
    for (int c = 0; c < row_columns; ++c) {
      if (c < count) to[c] = (*this)[c];
    }
  }
};

}  // namespace attest
