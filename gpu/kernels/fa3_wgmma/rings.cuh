#pragma once

#include "gpu/kernels/fa3_wgmma/parameters.cuh"
#include "gpu/kernels/fa3_wgmma/shape.cuh"
#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/shared_address.cuh"

namespace attest {

/// Places of a block's tiles and barriers in shared memory. Each buffer has two barriers: full, on
/// which its bytes arrive, and empty, at which its readers arrive.
template <typename Shape>
struct Fa3Rings {
  unsigned char* first;
  SharedAddress base;  ///< shared address of `first`

  /// `shared` is aligned to swizzle_bytes.
  __device__ __forceinline__ explicit Fa3Rings(unsigned char* shared)
      : first(shared), base(shared) {}

  __device__ SharedAddress q_tile(int stage, int group) const {
    return base + Shape::q_at + (stage * Shape::consumers + group) * Shape::q_bytes;
  }
  __device__ SharedAddress k_tile(int stage) const {
    return base + Shape::k_at + stage * Shape::kv_bytes;
  }
  __device__ SharedAddress v_tile(int stage) const {
    return base + Shape::v_at + stage * Shape::v_bytes;
  }

  /// Place where O of a group waits for the copy engine, `o_panels` panels at a time.
  __device__ SharedAddress output(int group) const {
    return base + Shape::o_at + group * Shape::choice.o_panels * Shape::q_panel_bytes;
  }

  __device__ Mbarrier full_k(int stage) const { return barrier(stage); }
  __device__ Mbarrier empty_k(int stage) const { return barrier(k + stage); }
  __device__ Mbarrier full_v(int stage) const { return barrier(2 * k + stage); }
  __device__ Mbarrier empty_v(int stage) const { return barrier(2 * k + v + stage); }
  __device__ Mbarrier full_q(int stage, int group) const {
    return barrier(2 * (k + v) + stage * Shape::consumers + group);
  }
  __device__ Mbarrier empty_q(int stage, int group) const {
    return barrier(2 * (k + v) + (Shape::q_stages + stage) * Shape::consumers + group);
  }

  /// Work with the block's `n`th Q of a group; written before that Q is full. Through a pointer,
  /// not an asm: ptxas then knows that all lanes have the same, and keeps what follows from it, the
  /// descriptors above all, in uniform registers.
  __device__ typename Shape::Work& work(unsigned n, int group) const {
    const int place = static_cast<int>(n % Shape::works) * Shape::consumers + group;
    return reinterpret_cast<typename Shape::Work*>(first + Shape::works_at)[place];
  }

  /// One of two places by which loading warps tell each other the number of an output tile.
  __device__ int& ticket(unsigned n) const {
    return reinterpret_cast<int*>(first + Shape::tickets_at)[n % 2];
  }

  /// One thread, before a barrier of the block.
  __device__ void init() const {
#ifdef __CUDACC__
    if (base.value() % swizzle_bytes != 0)
      __trap();  // no block of its own has ever begun elsewhere
#endif
    for (int stage = 0; stage < k; ++stage) {
      full_k(stage).init(1);
      empty_k(stage).init(4 * Shape::consumers);  // a lane of each warp
    }
    for (int stage = 0; stage < v; ++stage) {
      full_v(stage).init(Shape::v_writers);
      empty_v(stage).init(4 * Shape::consumers);
    }
    for (int stage = 0; stage < Shape::q_stages; ++stage) {
      for (int group = 0; group < Shape::consumers; ++group) {
        full_q(stage, group).init(1);
        empty_q(stage, group).init(4);
      }
    }
    fence_barrier_init();
  }

 private:
  static constexpr int k = Shape::k_stages, v = Shape::v_stages;

  __device__ Mbarrier barrier(int i) const {
    return Mbarrier(base + (Shape::barriers_at + 8 * i));
  }
};

}  // namespace attest
