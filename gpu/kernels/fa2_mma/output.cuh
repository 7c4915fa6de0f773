#pragma once

#include <cstdint>
#include <type_traits>

#include "core/run/kernel.hpp"
#include "gpu/kernels/head_work.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/swizzled_tile.cuh"

namespace attest {

/// Stores two neighbours, rounded to T, at an address that both divide.
template <typename T>
__device__ __forceinline__ void store_pair(T* to, float low, float high) {
  if constexpr (std::is_same_v<T, float>)
    *reinterpret_cast<float2*>(to) = {low, high};
  else
    *reinterpret_cast<unsigned*>(to) = packed<T>(low, high);
}

/// Writes the warp's rows of O, o * factor, rounded to T. They go through `staging`, the warp's own
/// rows of Q's tile, which no other warp reads, so that each row is written in whole lines. Rows
/// that do not start at multiples of 16 bytes are written element by element.
template <typename Shape, typename Rows>
__device__ __forceinline__ void store_output(const typename Shape::Outputs& o,
                                             const typename Shape::Rows& factor, const Rows& to,
                                             std::int64_t first_row, int columns,
                                             typename Shape::T* staging) {
  using T = typename Shape::T;
  using Tile = SwizzledTile<T, Shape::D>;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const Tile tile{staging};
  __syncwarp();  // all lanes have read Q
#pragma unroll
  for (int i = 0; i < Shape::row_tiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int n = 0; n < Shape::D / 8; ++n) {
        const int column = 8 * n + 2 * t;
        store_pair(tile.at(16 * i + 8 * h + g, column / Tile::chunk) + column % Tile::chunk,
                   o[i][n][2 * h] * factor[i][h], o[i][n][2 * h + 1] * factor[i][h]);
      }
    }
  }
  __syncwarp();
  const int rows = to.existing(first_row, Shape::warp_rows);
  const bool is_wide = widest_row_copy(to, columns) == 16;
#pragma unroll 4
  for (int x = lane; x < Shape::warp_rows * Tile::chunks; x += 32) {
    const int row = x / Tile::chunks, chunk = x % Tile::chunks, column = chunk * Tile::chunk;
    if (row >= rows || column >= columns) continue;
    T* const target = to.row(first_row + row) + column;
    const T* const source = tile.at(row, chunk);
    if (is_wide)
      *reinterpret_cast<uint4*>(target) = *reinterpret_cast<const uint4*>(source);
    else
      for (int e = 0; e < Tile::chunk && column + e < columns; ++e) target[e] = source[e];
  }
}

}  // namespace attest
