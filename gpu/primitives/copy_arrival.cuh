#pragma once

#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/mbarrier.cuh"
#ifndef __CUDACC__
#include "gpu/simt/copy_arrival.hpp"
#endif

namespace attest {

/// Arrives at the barrier, as one of the arrivals that it was made for, once all copies have
/// arrived that the thread has started by AsyncCopies [PTX ISA, cp.async.mbarrier.arrive.noinc].
/// The thread goes on at once. Who waits for the barrier may read what was copied with ordinary
/// loads; for wgmma and the copy engine it calls fence_async_shared() first. Other stores of the
/// thread are not ordered by this arrival.
__device__ __forceinline__ void arrive_after_copies(const Mbarrier& barrier) {
#ifdef __CUDACC__
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier.address())
               : "memory");
#else
  simt::arrive_after_copies(barrier.address());
#endif
}

}  // namespace attest
