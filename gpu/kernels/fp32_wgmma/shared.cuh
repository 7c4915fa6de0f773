#pragma once

#include "gpu/kernels/fp32_wgmma/parameters.cuh"
#include "gpu/kernels/fp32_wgmma/shape.cuh"
#include "gpu/primitives/delay.cuh"
#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

/// Shared memory of a block: Q, the rings of K and V tiles, and their barriers.
template <typename Shape>
class SplitShared {
 public:
  static constexpr int stages = Shape::stages;

  /// `first`: of dynamic shared memory, whose alignment is 16 bytes.
  __device__ explicit SplitShared(SharedAddress first) : base_(first.aligned_to(swizzle_bytes)) {}

  __device__ SharedAddress q() const { return base_; }
  __device__ SharedAddress k() const { return base_ + Shape::k_at; }
  __device__ SharedAddress v() const { return base_ + Shape::v_at; }
  __device__ Mbarrier q_full() const { return barrier(0); }
  __device__ Mbarrier k_full(int stage) const { return barrier(1 + stage); }
  __device__ Mbarrier k_empty(int stage) const { return barrier(1 + stages + stage); }
  __device__ Mbarrier v_full(int stage) const { return barrier(1 + 2 * stages + stage); }
  __device__ Mbarrier v_empty(int stage) const { return barrier(1 + 3 * stages + stage); }

  /// One thread; a barrier of the block follows. `groups` of the warpgroups multiply.
  __device__ void init(int groups) const {
    q_full().init(1);
    for (int stage = 0; stage < stages; ++stage) {
      k_full(stage).init(1);
      v_full(stage).init(1);
      k_empty(stage).init(4 * groups);  // a lane of every warp
      v_empty(stage).init(4 * groups);
    }
    fence_barrier_init();
  }

  /// One thread asks for all that the block reads.
  __device__ void load(const SplitProblem& p, int head, int first_row, int key_tiles) const {
    const int kv_head = p.kv_head_of(head);
    q_full().arrive_expecting(Shape::q_bytes);
    load_parts(p.q, q(), Shape::q_part_bytes, Shape::q_panel_bytes, first_row, head, q_full(),
               L2Hint::evict_first);
    int stage = 0;
    unsigned parity = 1;
    for (int n = 0; n < key_tiles; ++n) {
      const auto load_keys = [&](const TensorMap& map, SharedAddress to, Mbarrier full,
                                 Mbarrier empty) {
        empty.wait(parity);
        maybe_pause<Shape>(0);
        full.arrive_expecting(Shape::k_bytes);
        load_parts(map, to + stage * Shape::k_bytes, Shape::k_part_bytes, Shape::k_panel_bytes,
                   n * Shape::Bc, kv_head, full, L2Hint::evict_last);
      };
      load_keys(p.k, k(), k_full(stage), k_empty(stage));
      load_keys(p.v, v(), v_full(stage), v_empty(stage));
      if (++stage == stages) stage = 0, parity ^= 1;
    }
  }

 private:
  __device__ Mbarrier barrier(int n) const {
    return Mbarrier(base_ + (Shape::barriers_at + 8 * n));
  }

  static __device__ void load_parts(const TensorMap& map, SharedAddress to, int part_bytes,
                                    int panel_bytes, int row, int head, Mbarrier full,
                                    L2Hint hint) {
    for (int part = 0; part < Shape::Parts::count; ++part)
      for (int panel = 0; panel < Shape::panels; ++panel)
        load_box(to + (part * part_bytes + panel * panel_bytes), map,
                 {panel * panel_columns, row, head, part}, full, hint);
  }

  SharedAddress base_;
};

}  // namespace attest
