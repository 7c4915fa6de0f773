#pragma once

#include <cstdint>

#include "gpu/kernels/bwd_wgmma/thread.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// Rows of a tensor in memory, 16 of which a warp writes.
template <typename T>
struct RowsOut {
  T* first;  ///< the warp's first row
  std::int64_t stride;
  int rows, columns;  ///< that exist, from there on
};

/// Writes 8 numbers, or the first `count` of them.
template <typename T>
__device__ __forceinline__ void store_eight(T* to, const uint4& numbers, int count) {
  if (count >= 8) {
    *reinterpret_cast<uint4*>(to) = numbers;
    return;
  }
  const std::uint64_t low = numbers.x | std::uint64_t{numbers.y} << 32;
  const std::uint64_t high = numbers.z | std::uint64_t{numbers.w} << 32;
  auto* const bits = reinterpret_cast<unsigned short*>(to);
#pragma unroll 1
  for (int e = 0; e < count; ++e) {
    bits[e] = static_cast<unsigned short>((e < 4 ? low : high) >> 16 * (e % 4));
  }
}

/// Writes a warp's 16 rows of a result of wgmma, times `factor`. They are put in order in shared
/// memory first, at `ordered` and `panel_bytes` further on for each 64 columns, so that whole lines
/// go out. `ordered` is what the warp's rows begin with and nobody else's to read or write.
template <typename T, int half_n>
__device__ __forceinline__ void store_rows(const float (&d)[half_n], float factor,
                                           SharedAddress ordered, int panel_bytes,
                                           const RowsOut<T>& to) {
  constexpr int D = 2 * half_n, panels = D / panel_columns;
  const int lane = BwdThread::lane();
  __syncwarp();  // everybody has read what was there
#pragma unroll
  for (int i = 0; i < D / 8; i += 2) {
    unsigned pairs[4];
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      pairs[part] = packed<T>(d[4 * i + 2 * part] * factor, d[4 * i + 2 * part + 1] * factor);
    }
    store_matrices(ordered + (i / 8 * panel_bytes + swizzled_chunk(lane % 16, i % 8 + lane / 16)),
                   pairs);
  }
  __syncwarp();
  // A row's 128 bytes of a panel are for 8 lanes.
  const int column = 8 * (lane % 8);
#pragma unroll
  for (int panel = 0; panel < panels; ++panel) {
#pragma unroll
    for (int i = 0; i < 16; i += 4) {
      const int row = i + lane / 8, from = panel * panel_columns + column;
      const uint4 chunk =
          load_16_bytes(ordered + (panel * panel_bytes + swizzled_chunk(row, lane % 8)));
      if (row >= to.rows || from >= to.columns) continue;
      store_eight(to.first + row * to.stride + from, chunk, to.columns - from);
    }
  }
}

}  // namespace attest
