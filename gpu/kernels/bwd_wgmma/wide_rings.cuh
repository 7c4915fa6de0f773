#pragma once

#include "gpu/kernels/bwd_wgmma/rings.cuh"
#include "gpu/kernels/bwd_wgmma/wide_shape.cuh"

namespace attest {

/// Places of the tiles and barriers of a block of the wide kernel; full and empty as in BwdRings.
template <typename Shape>
struct BwdWideRings {
  unsigned char* first;
  SharedAddress base;  ///< shared address of `first`

  /// `shared` is aligned to swizzle_bytes.
  __device__ __forceinline__ explicit BwdWideRings(unsigned char* shared)
      : first(shared), base(shared) {}

  __device__ SharedAddress q(unsigned n) const {
    return base + (Shape::q_at + row_stage(n) * Shape::row_bytes);
  }
  __device__ SharedAddress d_o(unsigned n) const {
    return base + (Shape::do_at + do_stage(n) * Shape::row_bytes);
  }
  __device__ SharedAddress k(unsigned /*n*/) const { return base + Shape::k_at; }
  __device__ SharedAddress v(int /*group*/) const { return base + Shape::v_at; }
  __device__ SharedAddress p() const { return base + Shape::p_at; }
  __device__ SharedAddress ds() const { return base + Shape::ds_at; }
  __device__ SharedAddress dq(int slot) const {
    return base + (Shape::dq_at + slot * Shape::dq_slot_bytes);
  }
  /// LSE log2(e) and delta of the rows of Q and dO.
  __device__ const float* lse(unsigned n) const { return vector(Shape::lse_at, row_stage(n)); }
  __device__ const float* delta(unsigned n) const { return vector(Shape::delta_at, do_stage(n)); }
  __device__ BwdWork& work(unsigned n) const {
    return reinterpret_cast<BwdWork*>(first + Shape::works_at)[n % Shape::works];
  }

  __device__ Mbarrier full_work(unsigned n) const { return barrier(row_stage(n)); }
  __device__ Mbarrier empty_work(unsigned n) const { return barrier(2 + row_stage(n)); }
  __device__ Mbarrier full_q(unsigned n) const { return barrier(4 + row_stage(n)); }
  __device__ Mbarrier empty_q(unsigned n) const { return barrier(6 + row_stage(n)); }
  __device__ Mbarrier full_k(unsigned /*n*/) const { return barrier(8); }
  __device__ Mbarrier empty_k(unsigned /*n*/) const { return barrier(9); }
  __device__ Mbarrier full_v(int /*group*/) const { return barrier(10); }
  __device__ Mbarrier empty_v(int /*group*/) const { return barrier(11); }
  __device__ Mbarrier full_p() const { return barrier(12); }
  __device__ Mbarrier empty_p() const { return barrier(13); }
  __device__ Mbarrier full_ds() const { return barrier(14); }
  __device__ Mbarrier empty_ds() const { return barrier(15); }
  __device__ Mbarrier full_do(unsigned n) const { return barrier(16 + do_stage(n)); }
  __device__ Mbarrier empty_do(unsigned n) const {
    return barrier(16 + Shape::do_stages + do_stage(n));
  }
  __device__ Mbarrier full_dq(int slot) const { return barrier(dq_barriers + slot); }
  __device__ Mbarrier empty_dq(int slot) const {
    return barrier(dq_barriers + Shape::dq_slots + slot);
  }

  /// One thread, before a barrier of the block.
  __device__ void init() const {
#ifdef __CUDACC__
    if (base.value() % swizzle_bytes != 0)
      __trap();  // no block of its own has ever begun elsewhere
#endif
    constexpr unsigned one_group = 4;  // a lane of each warp
    for (unsigned n = 0; n < 2; ++n) {
      full_work(n).init(1);
      empty_work(n).init(3 * one_group + 2);
      full_q(n).init(1);
      empty_q(n).init(2 * one_group);
    }
    for (unsigned n = 0; n < Shape::do_stages; ++n) {
      full_do(n).init(1);
      empty_do(n).init(2 * one_group);
    }
    full_k(0).init(1);
    empty_k(0).init(one_group);
    full_v(0).init(1);
    empty_v(0).init(one_group);
    full_p().init(one_group);
    empty_p().init(one_group);
    full_ds().init(one_group);
    empty_ds().init(2 * one_group);
    for (int slot = 0; slot < Shape::dq_slots; ++slot) {
      full_dq(slot).init(one_group);
      empty_dq(slot).init(1);
    }
    fence_barrier_init();
  }

 private:
  static_assert(Shape::stages == 2 && Shape::works == 2);
  static constexpr int dq_barriers = 16 + 2 * Shape::do_stages;
  static __device__ int row_stage(unsigned n) {
    return static_cast<int>(n % 2);
  }
  static __device__ int do_stage(unsigned n) {
    return static_cast<int>(n % Shape::do_stages);
  }
  __device__ const float* vector(int at, int stage) const {
    return reinterpret_cast<const float*>(first + at + stage * Shape::vector_bytes);
  }
  __device__ Mbarrier barrier(int i) const {
    return Mbarrier(base + (Shape::barriers_at + 8 * i));
  }
};

/// The slots of dQ, one use after the other.
template <typename Shape>
struct BwdDqSlot {
  int number = 0;
  unsigned parity = 0;  ///< of full; of empty the other one

  __device__ __forceinline__ void advance() {
    if (++number < Shape::dq_slots) return;
    number = 0;
    parity ^= 1U;
  }
};

}  // namespace attest
