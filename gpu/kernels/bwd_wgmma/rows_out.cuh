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
      T* const place = to.first + row * to.stride + from;
      if (from + 8 <= to.columns) {
        *reinterpret_cast<uint4*>(place) = chunk;
        continue;
      }
      const std::uint64_t low = chunk.x | std::uint64_t{chunk.y} << 32;
      const std::uint64_t high = chunk.z | std::uint64_t{chunk.w} << 32;
      auto* const bits = reinterpret_cast<unsigned short*>(place);
#pragma unroll 1
      for (int e = 0; from + e < to.columns; ++e) {
        bits[e] = static_cast<unsigned short>((e < 4 ? low : high) >> 16 * (e % 4));
      }
    }
  }
}

}  // namespace attest
