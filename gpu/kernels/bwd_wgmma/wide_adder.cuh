#pragma once

#include <cstdint>

#include "gpu/kernels/bwd_wgmma/wide_rings.cuh"
#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

/// The thread that adds dQ to its sums in memory.
template <typename Shape>
struct BwdWideAdder {
  const BwdParameters& p;
  const BwdWideRings<Shape>& rings;

  __device__ __forceinline__ void run() const {
    wait_for_predecessor();
    BwdDqSlot<Shape> slot, last;
    bool has_last = false;
    for (unsigned n = 0;; ++n) {
      rings.full_work(n).wait(bwd_full(n));
      const BwdWork& work = rings.work(n);
      if (work.count == BwdWork::none_left) break;
      const int plane = work.plane, first = work.first, past = work.past;
      rings.empty_work(n).arrive();
#pragma unroll 1
      for (int head = plane; head < plane + p.group; ++head) {
#pragma unroll 1
        for (int tile = first; tile < past; ++tile) {
          const std::int64_t at = std::int64_t{head} * p.sums.tiles + tile;
          float* to = p.sums.dq + at * (Shape::Br * Shape::D);
#pragma unroll 1
          for (int i = 0; i < Shape::D / Shape::dq_slot_columns; ++i) {
            rings.full_dq(slot.number).wait(slot.parity);
            add_bytes(to, rings.dq(slot.number), Shape::dq_slot_bytes);
            commit_stores();
            to += Shape::dq_slot_bytes / 4;
            slot.advance();
            // One is read while the next is asked for.
            if (has_last) {
              wait_until_stores_have_read<1>();
              rings.empty_dq(last.number).arrive();
              last.advance();
            }
            has_last = true;
          }
        }
      }
    }
    wait_until_stores_are_done();
  }
};

}  // namespace attest
