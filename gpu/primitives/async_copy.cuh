#pragma once

#include <cstdint>

#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/shared_address.cuh"

namespace attest {

/// Copies from global to shared memory that run beside the thread's own work: cp.async, sm_80 on.
/// A thread starts copies, makes groups of them with commit(), and later waits for all but the
/// newest groups. What it waited for it may read; the others need a barrier after that wait. All
/// that concerns a thread's copies is the thread's, so the functions belong to no object.
///
/// `bytes` is 4, 8 or 16, and both addresses are multiples of it. A kernel whose rows may start
/// anywhere asks widest_copy() first. On the SIMT executor a copy arrives at the wait that
/// guarantees it and never before (gpu/simt/async_copy_queue.hpp).
class AsyncCopies {
 public:
  template <int bytes>
  static __device__ void copy(void* shared, const void* global) {
    copy_or_zero<bytes>(shared, global, true);
  }

  template <int bytes>
  static __device__ void copy(SharedAddress shared, const void* global) {
#ifdef __CUDA_ARCH__
    static_assert(bytes == 16);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared.value()), "l"(global)
                 : "memory");
#elif !defined(__CUDACC__)
    copy_or_zero<bytes>(shared, global, true);
#endif
  }

  /// Zeros when the source does not exist: a row past the end. `global` is then not read.
  template <int bytes>
  static __device__ void copy_or_zero(void* shared, const void* global, bool exists) {
    copy_or_zero<bytes>(SharedAddress(shared), global, exists);
  }
  template <int bytes>
  static __device__ void copy_or_zero(SharedAddress shared, const void* global, bool exists) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "what cp.async can copy");
    const int source_bytes = exists ? bytes : 0;
#ifdef __CUDA_ARCH__
    const unsigned to = shared.value();
    // Whole lines do not need the L1 cache, and only they may leave it out.
    if constexpr (bytes == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global),
                   "r"(source_bytes)
                   : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(global),
                   "r"(source_bytes), "n"(bytes)
                   : "memory");
#elif !defined(__CUDACC__)
    simt::start_async_copy(shared.value(), global, bytes, static_cast<std::size_t>(source_bytes));
#endif
  }

  /// Makes a group of what was started since the last call; a group may be empty.
  static __device__ void commit() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#elif !defined(__CUDACC__)
    simt::commit_async_copies();
#endif
  }

  /// Returns when all groups but the `newest` last ones have arrived.
  template <int newest>
  static __device__ void wait() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
#elif !defined(__CUDACC__)
    simt::wait_async_copies(newest);
#endif
  }
};

/// The most bytes, 16, 8, 4 or fewer, that one copy may take from rows that start at `first` and
/// are `stride_bytes` apart, `row_bytes` of each: all of these are multiples of it. Below 4 the
/// rows need plain loads.
inline __device__ int widest_copy(const void* first, std::int64_t stride_bytes,
                                  std::int64_t row_bytes) {
  const auto bits = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(first)) |
                    static_cast<unsigned long long>(stride_bytes) |
                    static_cast<unsigned long long>(row_bytes) | 16U;
  return static_cast<int>(bits & (~bits + 1));
}

/// load_tile() of copy.cuh by copies that run on: rows [begin, begin + rows) of `from`, `columns`
/// elements each, go to the tile whose rows are `pitch` elements apart; rows past the tensor become
/// zeros. Rows whose address or length is no multiple of 4 bytes are copied by plain loads and
/// stores at once: the barrier after the wait serves them too. No commit inside.
template <typename T>
__device__ void load_tile_async(const RowView<const T>& from, std::int64_t begin, int rows,
                                int columns, T* tile, int pitch) {
  constexpr int element = static_cast<int>(sizeof(T));
  const auto in_bytes = [](auto n) { return static_cast<std::int64_t>(n) * element; };
  const int from_width = widest_copy(from.first, in_bytes(from.stride), in_bytes(columns));
  const int width = min(from_width, widest_copy(tile, in_bytes(pitch), 0));
  const int existing = from.existing(begin, rows);
  const int each = width < 4 ? 1 : width / element;  // elements of a copy
  const int copies_a_row = columns / each;
  for (int i = static_cast<int>(threadIdx.x); i < rows * copies_a_row;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / copies_a_row, column = i % copies_a_row * each;
    const bool exists = row < existing;
    const T* const source = exists ? from.row(begin + row) + column : from.first;
    T* const target = tile + row * pitch + column;
    if (width == 16)
      AsyncCopies::copy_or_zero<16>(target, source, exists);
    else if (width == 8)
      AsyncCopies::copy_or_zero<8>(target, source, exists);
    else if (width == 4)
      AsyncCopies::copy_or_zero<4>(target, source, exists);
    else
      *target = exists ? *source : T{};
  }
}

}  // namespace attest
