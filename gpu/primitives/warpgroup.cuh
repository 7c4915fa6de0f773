#pragma once

namespace attest {

/// Four warps that multiply together (wgmma.cuh): 128 threads from a multiple of 128 on.
inline constexpr int warpgroup_threads = 128;

/// Gives registers of every thread of the warpgroup back, or asks for more and waits until others
/// gave theirs. All of the warpgroup call it; the kernel must have been compiled with a bound on
/// its registers. `registers`: a multiple of 8 in [24, 256].
template <int registers>
__device__ __forceinline__ void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

/// Named barrier `id` of the block's 16: returns when `threads` threads, whole warps, have called
/// sync or arrive for it. Barrier 0 is that of __syncthreads().
__device__ __forceinline__ void sync_named(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Counts as a call of sync_named() without waiting.
__device__ __forceinline__ void arrive_named(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// What this thread wrote to shared memory with ordinary stores becomes visible to wgmma and to the
/// copy engine; a barrier among the writers follows.
__device__ __forceinline__ void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// True in one lane of the warp, the same one at every call. All lanes call it.
__device__ __forceinline__ bool is_elected() {
  unsigned elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(elected));
  return elected != 0;
}

}  // namespace attest
