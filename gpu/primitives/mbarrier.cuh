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
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_), "r"(arrivals)
                 : "memory");
  }
  __device__ void arrive() const {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_) : "memory");
  }
  /// Arrives at the barrier of the same place in block `rank` of the cluster.
  __device__ void arrive_at(unsigned rank) const {
    asm volatile(
        "{\n.reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(address_),
        "r"(rank)
        : "memory");
  }
  /// Arrives and announces `bytes` of copies that will complete on this barrier.
  __device__ void arrive_expecting(unsigned bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_),
                 "r"(bytes)
                 : "memory");
  }
  __device__ void wait(unsigned parity) const {
    asm volatile(
        "{\n.reg .pred over;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
        "@!over bra again;\n}" ::"r"(address_),
        "r"(parity)
        : "memory");
  }

  [[nodiscard]] __device__ unsigned address() const { return address_; }

 private:
  unsigned address_;
};

/// Makes new barriers visible to the copy engine and to other blocks of the cluster.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

}  // namespace attest
