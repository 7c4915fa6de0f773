#pragma once

#include "gpu/kernels/fa3_wgmma/ring_cursor.cuh"
#include "gpu/kernels/fp8_wgmma/rings.cuh"
#include "gpu/primitives/delay.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/warpgroup.cuh"

namespace attest {

// The warps that turn key tiles of V: products of codes want the keys of a column of V side by
// side.
//
//   raw V       row: key, bytes: columns          V        row: column, bytes: keys
//
// A step takes 32 keys and 16 columns. ldmatrix transposes pairs of bytes: of matrix i, keys 8 i to
// 8 i + 7, lane 4 g + t gets keys 2 t, 2 t + 1 and columns 2 g, 2 g + 1. Two permutations of bytes
// of two such registers give it four keys of column 2 g, and four of column 2 g + 1, which stmatrix
// puts into place: column 2 g into row g of 16 and column 2 g + 1 into row 8 + g, since 8 rows side
// by side lie in all banks. So O's columns come in that order (fp8_column()).
//
// The order of keys within 32 is no matter to a sum, but it has to be that of P. A lane of a
// warpgroup has scores of keys 8 j + 2 t, 8 j + 2 t + 1 (wgmma.cuh), and of P as a left operand
// bytes 4 t to 4 t + 3 and 16 + 4 t to 16 + 4 t + 3. So bytes 4 t, 4 t + 1 stand for keys 2 t, 2 t
// + 1, bytes 4 t + 2, 4 t + 3 for 8 + 2 t, 8 + 2 t + 1, and those from 16 on for keys from 16 on
// alike: what the permutations give.

/// Four bytes of two registers, `order` as of PTX's prmt: a digit for each.
__device__ __forceinline__ unsigned bytes_of(unsigned low, unsigned high, unsigned order) {
#ifdef __CUDACC__
  return __byte_perm(low, high, order);
#else
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(both >> 8 * (order >> 4 * i & 7U) & 0xffU) << 8 * i;
  }
  return result;
#endif
}

/// Column of V whose sum is column 8 j + 2 t + e of a product with a transposed tile.
__device__ __forceinline__ int fp8_column(int j, int t, int e) {
  return 16 * (j / 2) + 4 * t + 2 * e + j % 2;
}

template <typename Shape>
struct Fp8Transposer {
  static constexpr int chunks = Shape::D / 16;  ///< of 16 columns
  static constexpr int blocks = Shape::Bc / 32;

  const Fp8RawRings<Shape>& raw;
  const Fa3Rings<Shape>& rings;
  int warp;  ///< of those that transpose
  unsigned delay_seed;

  /// Transposes the block's key tiles, up to the end of them.
  __device__ __forceinline__ void run() const {
#pragma unroll 1
    for (unsigned tile = 0;; ++tile) {
      const auto stage = static_cast<int>(tile % Shape::v_stages);
      const unsigned parity = tile / Shape::v_stages % 2;
      raw.full_v(stage).wait(parity);
      if (raw.is_end(stage)) break;
      rings.empty_v(stage).wait(parity ^ 1U);
      maybe_pause<Shape>(delay_seed);
      transpose(warp, raw.v_tile(stage), rings.v_tile(stage));
      fence_async_shared();
      __syncwarp();
      if (threadIdx.x % 32 == 0) {
        raw.empty_v(stage).arrive();
        rings.full_v(stage).arrive();
      }
    }
  }

 private:
  /// Few instructions, and few registers: these warps have 24, and hardly a slot beside those that
  /// weigh.
  __device__ __forceinline__ static void transpose(int warp, SharedAddress from, SharedAddress to) {
    // The lane gives the address of a row of a matrix: to load, of key `lane` of 32; to store, of
    // row `row` of 16, low or high keys.
    const int lane = Fa3Thread::lane(), row = lane % 16;
    const int high = (lane / 16 ^ row % 8) * 16;
#pragma unroll 1
    for (int chunk = warp; chunk < chunks; chunk += Shape::transposing_warps) {
      const SharedAddress columns =
          from + (chunk / 8 * Shape::kv_panel_bytes + swizzled_chunk(lane, chunk % 8));
      const SharedAddress rows = to + (16 * chunk + row) * panel_row_bytes;
#pragma unroll
      for (int block = 0; block < blocks; ++block) {
        unsigned r[4];
        load_matrices_transposed(r, columns + 32 * block * panel_row_bytes);
        // Of columns 2 g and 2 g + 1: keys 0 to 15, then 16 to 31.
        const unsigned turned[4] = {bytes_of(r[0], r[1], 0x6420), bytes_of(r[0], r[1], 0x7531),
                                    bytes_of(r[2], r[3], 0x6420), bytes_of(r[2], r[3], 0x7531)};
        store_matrices(rows + (high ^ 32 * block), turned);
      }
    }
  }
};

}  // namespace attest
