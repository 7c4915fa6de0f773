#pragma once

#include "gpu/kernels/bwd_wgmma/parameters.cuh"
#include "gpu/kernels/bwd_wgmma/shape.cuh"
#include "gpu/kernels/bwd_wgmma/thread.cuh"
#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/shared_address.cuh"

namespace attest {

/// Places of a block's tiles and barriers in shared memory. Each buffer has two barriers: full, at
/// which its writers arrive, and empty, at which its readers do. The nth use of a buffer with s
/// stages has stage n % s; it waits for full with parity n / s % 2, for empty with the other one.
template <typename Shape>
struct BwdRings {
  unsigned char* first;
  SharedAddress base;  ///< shared address of `first`

  /// `shared` is aligned to swizzle_bytes.
  __device__ __forceinline__ explicit BwdRings(unsigned char* shared)
      : first(shared), base(shared) {}

  __device__ SharedAddress q(unsigned n) const {
    return base + (Shape::q_at + stage(n) * Shape::row_bytes);
  }
  __device__ SharedAddress d_o(unsigned n) const {
    return base + (Shape::do_at + stage(n) * Shape::row_bytes);
  }
  __device__ SharedAddress ds(unsigned n) const {
    return base + (Shape::ds_at + stage(n) * Shape::ds_bytes);
  }
  __device__ SharedAddress k(unsigned n) const {
    return base + (Shape::k_at + static_cast<int>(n % Shape::k_stages) * Shape::key_bytes);
  }
  /// Each group's keys of V have panels and barriers of their own: nobody else reads them.
  __device__ SharedAddress v(int group) const {
    return base + (Shape::v_at + group * Shape::group_bytes);
  }
  __device__ SharedAddress dq(int panel) const {
    return base + (Shape::dq_at + panel * Shape::dq_panel_bytes);
  }
  /// LSE log2(e) and delta of the rows of Q and dO.
  __device__ const float* lse(unsigned n) const { return vector(Shape::lse_at, n); }
  __device__ const float* delta(unsigned n) const { return vector(Shape::delta_at, n); }
  /// Units in 1 of the rows of dO, where dQ is summed in units alone. Beside them used(): the range
  /// that a panel's rows use.
  __device__ float* units_in_one(unsigned n) const {
    return reinterpret_cast<float*>(first + Shape::units_at +
                                    static_cast<int>(n % Shape::unit_stages) * Shape::vector_bytes);
  }
  __device__ unsigned* used(int panel) const {
    return reinterpret_cast<unsigned*>(first + Shape::dq_at + (panel + 1) * Shape::dq_panel_bytes -
                                       Shape::vector_bytes);
  }
  __device__ BwdWork& work(unsigned n) const {
    return reinterpret_cast<BwdWork*>(first + Shape::works_at)[n % Shape::works];
  }

  __device__ Mbarrier full_q(unsigned n) const { return barrier(0 + stage(n)); }
  __device__ Mbarrier empty_q(unsigned n) const { return barrier(2 + stage(n)); }
  __device__ Mbarrier full_do(unsigned n) const { return barrier(4 + stage(n)); }
  __device__ Mbarrier empty_do(unsigned n) const { return barrier(6 + stage(n)); }
  __device__ Mbarrier full_ds(unsigned n) const { return barrier(8 + stage(n)); }
  __device__ Mbarrier empty_ds(unsigned n) const { return barrier(10 + stage(n)); }
  __device__ Mbarrier full_work(unsigned n) const { return barrier(12 + stage(n)); }
  __device__ Mbarrier empty_work(unsigned n) const { return barrier(14 + stage(n)); }
  __device__ Mbarrier full_dq(int panel) const { return barrier(16 + panel); }
  __device__ Mbarrier empty_dq(int panel) const { return barrier(16 + Shape::panels + panel); }
  __device__ Mbarrier full_v(int group) const { return barrier(v_barriers + group); }
  __device__ Mbarrier empty_v(int group) const {
    return barrier(v_barriers + Shape::groups + group);
  }
  __device__ Mbarrier full_k(unsigned n) const {
    return barrier(k_barriers + static_cast<int>(n % Shape::k_stages));
  }
  __device__ Mbarrier empty_k(unsigned n) const {
    return barrier(k_barriers + Shape::k_stages + static_cast<int>(n % Shape::k_stages));
  }

  /// One thread, before a barrier of the block.
  __device__ void init() const {
#ifdef __CUDACC__
    if (base.value() % swizzle_bytes != 0)
      __trap();  // no block of its own has ever begun elsewhere
#endif
    constexpr unsigned one_group = 4, all_groups = 4 * Shape::groups;  // a lane of each warp
    for (unsigned n = 0; n < 2; ++n) {
      full_q(n).init(1);
      empty_q(n).init(all_groups);
      full_do(n).init(1);
      empty_do(n).init(all_groups);
      full_ds(n).init(all_groups);
      empty_ds(n).init(one_group);
      full_work(n).init(1);
      empty_work(n).init(all_groups + 1 + Shape::panels);
    }
    for (int group = 0; group < Shape::groups; ++group) {
      full_v(group).init(1);
      empty_v(group).init(one_group);
    }
    for (int panel = 0; panel < Shape::panels; ++panel) {
      full_dq(panel).init(one_group);
      empty_dq(panel).init(1);
    }
    for (unsigned n = 0; n < Shape::k_stages; ++n) {
      full_k(n).init(1);
      empty_k(n).init(all_groups);
    }
    fence_barrier_init();
  }

 private:
  static_assert(Shape::stages == 2 && Shape::works == 2);
  static constexpr int v_barriers = 16 + 2 * Shape::panels;
  static constexpr int k_barriers = v_barriers + 2 * Shape::groups;
  static __device__ int stage(unsigned n) {
    return static_cast<int>(n % 2);
  }
  __device__ const float* vector(int at, unsigned n) const {
    return reinterpret_cast<const float*>(first + at + stage(n) * Shape::vector_bytes);
  }
  __device__ Mbarrier barrier(int i) const {
    return Mbarrier(base + (Shape::barriers_at + 8 * i));
  }
};

/// Parities of the nth use of a buffer.
template <int stages = 2>
__device__ __forceinline__ unsigned bwd_full(unsigned n) {
  return n / stages % 2;
}
template <int stages = 2>
__device__ __forceinline__ unsigned bwd_empty(unsigned n) {
  return bwd_full<stages>(n) ^ 1U;
}

}  // namespace attest
