#pragma once

#include "gpu/primitives/shared_address.cuh"

namespace attest {

/// A barrier in shared memory that counts arrivals and bytes [PTX ISA, mbarrier]. A phase ends when
/// `arrivals` threads have arrived and every byte that they announced is there. Phases have the
/// parities 0, 1, 0, ...; a wait for parity p returns once the phase of that parity is over, so a
/// wait for parity 1 on a new barrier returns at once.
class Mbarrier {
 public:
  /// `barrier`: 8 bytes in shared memory, aligned to 8.
  __device__ explicit Mbarrier(SharedAddress barrier) : address_(barrier.value()) {}

  /// One thread, once; fence_barrier_init() and a barrier of the block, or of the cluster, follow.
  __device__ void init(unsigned arrivals) const {
#ifdef __CUDACC__
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_), "r"(arrivals)
                 : "memory");
#else
    simt::init_mbarrier(address_, arrivals);
#endif
  }
  __device__ void arrive() const {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_) : "memory");
#else
    simt::arrive_mbarrier(address_, 0);
#endif
  }
#ifdef __CUDACC__
  /// Arrives at the barrier of the same place in block `rank` of the cluster.
  __device__ void arrive_at(unsigned rank) const {
    asm volatile(
        "{\n.reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(address_),
        "r"(rank)
        : "memory");
  }
#endif
  /// Arrives and announces `bytes` of copies that will complete on this barrier.
  __device__ void arrive_expecting(unsigned bytes) const {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_),
                 "r"(bytes)
                 : "memory");
#else
    simt::arrive_mbarrier(address_, bytes);
#endif
  }
#ifdef __CUDACC__
  __device__ void wait(unsigned parity) const {
    asm volatile(
        "{\n.reg .pred over;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
        "@!over bra again;\n}" ::"r"(address_),
        "r"(parity)
        : "memory");
  }
#else
  void wait(unsigned parity, const char* file = __builtin_FILE(),
            int line = __builtin_LINE()) const {
    simt::wait_mbarrier(address_, parity, file, line);
  }
#endif

  [[nodiscard]] __device__ auto address() const {
    return address_;
  }

 private:
  decltype(SharedAddress(nullptr).value()) address_;
};

/// Makes new barriers visible to the copy engine and to other blocks of the cluster.
__device__ inline void fence_barrier_init() {
#ifdef __CUDACC__
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
  // Barriers are seen at once.
#endif
}

}  // namespace attest
