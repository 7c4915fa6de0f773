#pragma once

#include <cstring>

#include "gpu/primitives/shared_address.cuh"

namespace attest {

/// Four warps that multiply together (wgmma.cuh): 128 threads from a multiple of 128 on.
inline constexpr int warpgroup_threads = 128;

/// Registers that a block of `threads` gets where it has a multiprocessor to itself: those of a
/// thread are a multiple of 8. take_registers() waits for ever for more than the block has.
constexpr int registers_of_block(int threads) {
  return (65536 / threads < 255 ? 65536 / threads : 255) / 8 * 8 * threads;
}

/// Gives registers of every thread of the warpgroup back, or asks for more and waits until others
/// gave theirs. All of the warpgroup call it; the kernel must have been compiled with a bound on
/// its registers. `registers`: a multiple of 8 in [24, 256].
template <int registers>
__device__ __forceinline__ void release_registers() {
#ifdef __CUDACC__
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#else
  // The host has its own.
#endif
}
template <int registers>
__device__ __forceinline__ void take_registers() {
#ifdef __CUDACC__
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#else
  // As above.
#endif
}

/// Named barrier `id` of the block's 16: returns when `threads` threads, whole warps, have called
/// sync or arrive for it. Barrier 0 is that of __syncthreads().
__device__ __forceinline__ void sync_named(int id, int threads) {
#ifdef __CUDACC__
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  simt::meet_named_barrier(id, static_cast<unsigned>(threads), true, __builtin_FILE(),
                           __builtin_LINE());
#endif
}
/// Counts as a call of sync_named() without waiting.
__device__ __forceinline__ void arrive_named(int id, int threads) {
#ifdef __CUDACC__
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  simt::meet_named_barrier(id, static_cast<unsigned>(threads), false, __builtin_FILE(),
                           __builtin_LINE());
#endif
}

/// Makes what this thread wrote to shared memory with ordinary stores visible to wgmma and to the
/// copy engine; a barrier among the writers follows.
__device__ __forceinline__ void fence_async_shared() {
#ifdef __CUDACC__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  // Everybody sees everything at once.
#endif
}

/// The inverse of load_matrices() of four: lane 8 i + r stores row r of matrix i at its `row`; lane
/// 4 g
/// + t has columns 2 t and 2 t + 1 of row g of matrix i in r[i].
__device__ __forceinline__ void store_matrices(SharedAddress row, const unsigned (&r)[4]) {
#ifdef __CUDACC__
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row.value()),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
#else
  const unsigned lane = threadIdx.x % 32;
  unsigned words[4] = {};
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned t = 0; t < 4; ++t) {
      const unsigned word = __shfl_sync(0xffffffffU, r[i], static_cast<int>(lane % 8 * 4 + t));
      if (lane / 8 == i) words[t] = word;
    }
  }
  memcpy(row.value(), words, 16);
#endif
}

/// Stores four matrices, each transposed: lane 8 i + r stores column r of matrix i at its `row`.
__device__ __forceinline__ void store_transposed(SharedAddress row, const unsigned (&r)[4]) {
#ifdef __CUDACC__
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row.value()),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
#else
  const unsigned lane = threadIdx.x % 32, column = lane % 8;
  unsigned short elements[8] = {};
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned g = 0; g < 8; ++g) {
      const unsigned word = __shfl_sync(0xffffffffU, r[i], static_cast<int>(4 * g + column / 2));
      if (lane / 8 == i) elements[g] = static_cast<unsigned short>(word >> 16 * (column % 2));
    }
  }
  memcpy(row.value(), elements, 16);
#endif
}

/// 16 bytes to a multiple of 16.
__device__ __forceinline__ void store_16_bytes(SharedAddress to, const float4& x) {
#ifdef __CUDACC__
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to.value()), "f"(x.x), "f"(x.y),
               "f"(x.z), "f"(x.w)
               : "memory");
#else
  memcpy(to.value(), &x, sizeof x);
#endif
}

/// 8 bytes to a multiple of 8.
__device__ __forceinline__ void store_8_bytes(SharedAddress to, unsigned low, unsigned high) {
#ifdef __CUDACC__
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to.value()), "r"(low), "r"(high)
               : "memory");
#else
  const unsigned words[2] = {low, high};
  memcpy(to.value(), words, sizeof words);
#endif
}

/// 16 bytes at a multiple of 16.
__device__ __forceinline__ uint4 load_16_bytes(SharedAddress from) {
  uint4 x;
#ifdef __CUDACC__
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(from.value())
               : "memory");
#else
  memcpy(&x, from.value(), sizeof x);
#endif
  return x;
}

/// True in one lane of the warp, the same one at every call. All lanes call it.
__device__ __forceinline__ bool is_elected() {
#ifdef __CUDACC__
  unsigned elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(elected));
  return elected != 0;
#else
  return threadIdx.x % 32 == 0;
#endif
}

}  // namespace attest
