#pragma once

#include "gpu/kernels/fa3_wgmma/rings.cuh"

namespace attest {

/// The calling thread's place in its warpgroup. Every call reads the thread number again. A number
/// that the compiler works out before the loops would have to wait in local memory.
struct Fa3Thread {
  static __device__ __forceinline__ int lane() { return static_cast<int>(number() & 31U); }
  static __device__ __forceinline__ int warp() { return static_cast<int>(number() >> 5 & 3U); }

 private:
  static __device__ __forceinline__ unsigned number() {
#ifdef __CUDACC__
    unsigned x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
#else
    return threadIdx.x;
#endif
  }
};

/// Progress of one warpgroup that multiplies in the rings of Q, K and V. Tiles are counted from the
/// block's first; a tile's number gives its stage in the ring and the parity of its barriers.
template <typename Shape>
struct Fa3RingCursor {
  using Work = typename Shape::Work;
  const Fa3Rings<Shape>& rings;
  const int group;        ///< of the warpgroups that multiply
  unsigned kv_tiles = 0;  ///< key tiles of this block whose V is done with
  unsigned q_tiles = 0;   ///< Q tiles of this block that came before

  __device__ __forceinline__ Fa3RingCursor(const Fa3Rings<Shape>& rings_, int group_)
      : rings(rings_), group(group_) {}

  __device__ __forceinline__ SharedAddress q_tile() const {
    return rings.q_tile(stage_of_q(q_tiles), group);
  }
  __device__ __forceinline__ SharedAddress last_q_tile() const {
    return rings.q_tile(stage_of_q(q_tiles - 1), group);
  }
  __device__ __forceinline__ SharedAddress k_tile(unsigned tile) const {
    return rings.k_tile(stage_of_k(tile));
  }
  __device__ __forceinline__ SharedAddress v_tile(unsigned tile) const {
    return rings.v_tile(stage_of_v(tile));
  }
  /// Work with the current Q.
  __device__ __forceinline__ const Work& work() const { return rings.work(q_tiles, group); }
  __device__ __forceinline__ const Work& last_work() const {
    return rings.work(q_tiles - 1, group);
  }

  __device__ __forceinline__ void wait_for_k(unsigned tile) const {
    rings.full_k(stage_of_k(tile)).wait(tile / Shape::k_stages % 2);
  }
  __device__ __forceinline__ void wait_for_v(unsigned tile) const {
    rings.full_v(stage_of_v(tile)).wait(tile / Shape::v_stages % 2);
  }
  __device__ __forceinline__ Work wait_for_work() const {
    rings.full_q(stage_of_q(q_tiles), group).wait(q_tiles / Shape::q_stages % 2);
    return work();
  }

  // Every warp of the group must have read a tile before it is released.
  __device__ __forceinline__ void release_q() const {
    release(rings.empty_q(stage_of_q(q_tiles), group));
  }
  __device__ __forceinline__ Mbarrier last_empty_q() const {
    return rings.empty_q(stage_of_q(q_tiles - 1), group);
  }
  __device__ __forceinline__ void release_k(unsigned tile) const {
    release(rings.empty_k(stage_of_k(tile)));
  }
  /// Releases V of the current key tile and goes on to the next.
  __device__ __forceinline__ void finish_key_tile() {
    release(rings.empty_v(stage_of_v(kv_tiles)));
    ++kv_tiles;
  }
  /// Releases a K that this group does not read.
  __device__ __forceinline__ void skip_k(unsigned tile) const {
    wait_for_k(tile);
    __syncwarp();  // all lanes have seen it: a phase is over, and the next may be, before the last
    release_k(tile);
  }

 private:
  static __device__ __forceinline__ int stage_of_q(unsigned tile) {
    return static_cast<int>(tile % Shape::q_stages);
  }
  static __device__ __forceinline__ int stage_of_k(unsigned tile) {
    return static_cast<int>(tile % Shape::k_stages);
  }
  static __device__ __forceinline__ int stage_of_v(unsigned tile) {
    return static_cast<int>(tile % Shape::v_stages);
  }
  __device__ __forceinline__ void release(Mbarrier empty) const {
    if (Fa3Thread::lane() == 0) empty.arrive();
  }
};

}  // namespace attest
