#pragma once

#include <cstdint>

#include "core/attention/layout.hpp"
#include "gpu/kernels/fa3_wgmma/ring_cursor.cuh"
#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// A tensor of 16-bit numbers whose rows are copied one by one.
struct Fa3RowSource {
  const std::uint16_t* first;
  Strides strides;
};

/// Copies of 64 rows into a tile as the copy engine would leave it, by the lanes of a warp, 16
/// bytes each (cp.async). `offsets[h]` is where the row of 32 h + the lane's number begins; it is
/// not asked for rows that are not there.
template <int D>
class Fa3RowCopies {
  static constexpr int rows = 64;
  static constexpr int chunks = D / 8;  ///< of 16 bytes of a row
  static constexpr int rows_at_once = 32 / chunks;
  static_assert(32 % chunks == 0);

 public:
  /// All rows and columns are there. Offsets are in units of 16 bytes, in 32 bits: half of the
  /// exchanges between lanes, and every instruction here is one that no warp that weighs can issue.
  static __device__ __forceinline__ void copy_all(const std::uint16_t* from,
                                                  const unsigned (&offsets)[2], SharedAddress to) {
    constexpr int pattern = 8;  // rows after which the swizzle begins anew
    const int lane = Fa3RowCopies::lane();
    const auto* chunk_of_row = reinterpret_cast<const char*>(from + 8 * (lane % chunks));
#ifdef __CUDACC__
    asm("" : "+l"(chunk_of_row));  // one addition a row: the compiler would make three of it
#endif
    to = to + lane % chunks / 8 * (rows * panel_row_bytes);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll 2
      for (int first = 0; first < 32; first += pattern) {
#pragma unroll
        for (int i = 0; i < pattern; i += rows_at_once) {
          const int row = i + lane / chunks;
          const std::uint64_t offset = __shfl_sync(0xffffffffU, offsets[h], first + row);
          AsyncCopies::copy<16>(
              to + (swizzled_chunk(row, lane % chunks % 8) + (32 * h + first) * panel_row_bytes),
              chunk_of_row + 16 * offset);
        }
      }
    }
  }

  /// Copies a chunk of rows; zeros from row `there` on, and from `columns` on.
  static __device__ __forceinline__ void copy_some(const std::uint16_t* from, int columns,
                                                   const std::int64_t (&offsets)[2], int there,
                                                   SharedAddress to) {
    const int chunk = lane() % chunks, elements = max(0, min(columns - 8 * chunk, 8));
    to = to + chunk / 8 * (rows * panel_row_bytes);
#pragma unroll 1
    for (int i = 0; i < rows; i += rows_at_once) {
      const int row = i + lane() / chunks;
      const std::int64_t offset =
          __shfl_sync(0xffffffffU, i < 32 ? offsets[0] : offsets[1], row % 32);
      const int bytes = row < there ? 2 * elements : 0;
      copy_part(to + swizzled_chunk(row, chunk % 8), from + (bytes > 0 ? offset + 8 * chunk : 0),
                bytes);
    }
  }

  /// Waits for the warp's copies, makes them visible to products and says so.
  static __device__ __forceinline__ void finish(Mbarrier full) {
    AsyncCopies::commit();
    AsyncCopies::wait<0>();
    fence_async_shared();
    __syncwarp();
    if (lane() == 0) full.arrive();
  }

 private:
  static __device__ __forceinline__ int lane() {
    return Fa3Thread::lane();
  }

  /// The first `source_bytes` of 16, and zeros behind them; 0: `global` is not read.
  static __device__ __forceinline__ void copy_part(SharedAddress shared, const void* global,
                                                   int source_bytes) {
#ifdef __CUDACC__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared.value()), "l"(global),
                 "r"(source_bytes)
                 : "memory");
#else
    simt::start_async_copy(shared.value(), global, 16, static_cast<std::size_t>(source_bytes));
#endif
  }
};

}  // namespace attest
