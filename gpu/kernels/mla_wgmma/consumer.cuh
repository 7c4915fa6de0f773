#pragma once

// What the two warpgroups that multiply do.
//
// Idea [FlashMLA: seesaw scheduling]
//   O [64, 512] fits in the registers of two warpgroups: group g has columns [256 g, 256 (g + 1)).
//   Key tiles go in pairs. Group 0 forms S = Q K^T of the first one, group 1 of the second; each
//   makes weights P of its own and leaves them in shared memory, and both add P V of both tiles to
//   their half of O.
//
//     group 0                                   group 1
//     P_0 = weights(S)                          issue S = Q K_1
//     leave P_0 and references       -------->  issue O += P_0 V_0 from shared memory
//     O += P_0 V_0 from registers               P_1 = weights(S)
//                                    <--------  leave P_1 and references
//     issue O += P_1 V_1 from shared memory     O += P_1 V_1 from registers
//     issue S = Q K_2, wait for both            (from above, with K_3)
//
//   P has one place in shared memory: who leaves a P has read the one before. A tile of group g
//   lies in stage g, so that descriptors are constants.
// Resident
//   shared     Q [64, 576], K [2, 64, 576] of which V is the first 512 columns, P [64, 64]
//   registers  S [64, 64], P and half of O of each warpgroup; r, l of the rows
// Waits
//   full       a panel of a key tile is read after its bytes have arrived
//   empty      V of a key tile is given back in halves, each by the group that multiplies it; what
//              is no value by the group that forms the scores
//   left       named barriers: P and references of a tile are there. They order P's reuse as well,
//              since they come in turn
// Tails
//   Keys past the chunk's last are hidden: S becomes -inf. The entry may have got no such keys, and
//   then their rows of the tile, which hold anything, become zeros before they are multiplied. Of a
//   list who gathers its keys makes those rows zeros, and says which keys are seen.

#include "gpu/kernels/mla_wgmma/output.cuh"
#include "gpu/kernels/mla_wgmma/softmax.cuh"
#include "gpu/kernels/mla_wgmma/work.cuh"
#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/wgmma.cuh"
#include "gpu/primitives/wgmma_begin.cuh"

namespace attest {

/// The compiler may not keep what follows from the descriptor, which would fill registers from one
/// tile to the next.
__device__ __forceinline__ void forget_origin(MatrixDescriptor& descriptor) {
#ifdef __CUDACC__
  asm volatile("" : "+l"(descriptor));
#else
  (void)descriptor;
#endif
}

/// One warpgroup that multiplies.
template <typename Shape, int group>
class MlaConsumer {
  using T = typename Shape::T;
  static constexpr int both = Shape::consumers * warpgroup_threads;

 public:
  __device__ __forceinline__ MlaConsumer(const MlaParameters& p, const MlaShared<Shape>& shared)
      : p_(p), shared_(shared) {}

  __device__ __forceinline__ void run() {
    for (unsigned n = 0;; ++n) {
      shared_.work_full(n).wait(n / 2 % 2);
      const MlaWork& work = shared_.work(n);
      if (work.exists == 0) return;
      load_queries(work);
      MlaSoftmax softmax;
#pragma unroll
      for (float& x : o_) x = 0.0F;
      sync_named(Shape::meet, both);  // all of Q is there
      if constexpr (group == 0) {
        attend_first(work, softmax);
      } else {
        attend_second(work, softmax);
      }
      finish(work, softmax);
      if (lane() == 0) shared_.work_empty(n).arrive();
    }
  }

 private:
  static __device__ __forceinline__ int lane() {
    return static_cast<int>(threadIdx.x & 31U);
  }
  static __device__ __forceinline__ int warp() {
    return static_cast<int>(threadIdx.x >> 5 & 3U);
  }
  /// The lane's upper row of the tile; its other row is 8 below.
  static __device__ __forceinline__ int row() {
    return 16 * warp() + lane() / 4;
  }

  /// Stages of tiles whose scores this group forms, and of the other group's.
  static constexpr int own = group, other = 1 - group;
  __device__ __forceinline__ void release(int stage, int part) const {
    if (lane() == 0) shared_.empty(stage, part).arrive();
  }

  /// Every warp loads 16 rows of its group's panels, where it left rows of O before, and some of
  /// the last panel. Rows that there are not become zeros.
  __device__ __forceinline__ void load_queries(const MlaWork& work) const {
    const DecodeUnit& unit = work.unit;
    const ForwardArguments& a = p_.a;
    const T* const q = static_cast<const T*>(a.q) +
                       a.q_strides.offset(a.query_starts != nullptr ? 0 : unit.entry,
                                          unit.kv_head * p_.sizes.group, unit.of.q_start);
    const int thread = static_cast<int>(thread_asked_anew() % warpgroup_threads);
    const int warp = thread / 32, lane = thread % 32;
    const auto copy = [&](int row, int panel, int chunk) {
      const int n = work.first_row + row;
      const bool is_there = row < work.rows;
      const T* const from = q + n / p_.sizes.group * a.q_strides.row +
                            n % p_.sizes.group * a.q_strides.head + panel * panel_columns +
                            chunk * 8;
      AsyncCopies::copy_or_zero<16>(shared_.q_panel(panel) + swizzled_chunk(row, chunk),
                                    is_there ? from : q, is_there);
    };
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
      copy(16 * warp + i, Shape::first_panel(group) + lane / 8, lane % 8);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      copy(16 * warp + 8 * group + i + lane / 8, Shape::panels - 1, lane % 8);
    }
    AsyncCopies::commit();
    AsyncCopies::wait<0>();
    fence_async_shared();
  }

  /// Issues S = Q K^T, panel by panel as they arrive, of the `first`th panel to before the
  /// `past`th. Of a tile at the end of the entry rows past its keys become zeros first.
  template <int first, int past>
  __device__ __forceinline__ void issue_scores(const MlaWork& work, int tile) {
    const unsigned parity = scored_ % 2;
    if constexpr (first == 0 && !Shape::listed) {
      if (work.keys_of(tile) < Shape::tile_keys) clear_tail(own, parity, work.keys_of(tile));
    }
    MatrixDescriptor q = k_major_at(shared_.q_panel(0));
    MatrixDescriptor k = k_major_at(shared_.k_tile(own));
    if constexpr (Shape::listed) {
      forget_origin(q);
      forget_origin(k);
    }
#pragma unroll
    for (int i = first; i < past; ++i) {
      const int panel = Shape::nth_panel(i);
      shared_.full(own, panel).wait(parity);
      if constexpr (Shape::listed) fence_async_shared();  // threads have copied
      fence_products();
#pragma unroll
      for (int j = 4 * panel; j < 4 * panel + 4; ++j) {
        const MatrixDescriptor a = q + k_major_step(j, Shape::rows);
        const MatrixDescriptor b = k + k_major_step(j, Shape::tile_keys);
        if (i == 0 && j == 4 * panel) {
          begin_product<T, Major::k, Major::k>(s_, a, b);
        } else {
          issue_product<T, Major::k, Major::k>(s_, a, b, true);
        }
      }
    }
    commit_products();
    if constexpr (past == Shape::panels) ++scored_;
  }
  __device__ __forceinline__ void clear_tail(int stage, unsigned parity, int keys) const {
    constexpr int chunks = panel_row_bytes / 16;
    for (int panel = 0; panel < Shape::panels; ++panel) shared_.full(stage, panel).wait(parity);
    unsigned char* const tile = shared_.first + Shape::k_at + stage * Shape::tile_bytes;
    const int each = (Shape::tile_keys - keys) * chunks;
    for (int i = static_cast<int>(threadIdx.x % warpgroup_threads); i < Shape::panels * each;
         i += warpgroup_threads) {
      *reinterpret_cast<uint4*>(tile + i / each * Shape::panel_bytes + keys * panel_row_bytes +
                                i % each * 16) = uint4{0, 0, 0, 0};
    }
    fence_async_shared();
    sync_named(Shape::alone + group, warpgroup_threads);
  }

  __device__ __forceinline__ MatrixDescriptor values_of(int stage) const {
    return mn_major_at(shared_.k_tile(stage) + Shape::first_panel(group) * Shape::panel_bytes,
                       Shape::tile_keys);
  }
  /// Issues O += P V with this group's weights, in registers.
  __device__ __forceinline__ void issue_own() {
    const MatrixDescriptor v = values_of(own);
    hold(o_);
#pragma unroll
    for (int i = 0; i < Shape::tile_keys / 16; ++i) hold(weights_[i]);
    fence_products();
#pragma unroll
    for (int i = 0; i < Shape::tile_keys / 16; ++i) {
      issue_product<T, Major::mn>(o_, weights_[i], v + mn_major_step(i), true);
    }
    commit_products();
  }
  /// Issues the product with the other group's weights, in shared memory.
  __device__ __forceinline__ void issue_other() {
    const MatrixDescriptor v = values_of(other), weights = k_major_at(shared_.weights());
    hold(o_);
    fence_products();
#pragma unroll
    for (int i = 0; i < Shape::tile_keys / 16; ++i) {
      issue_product<T, Major::k, Major::mn>(o_, weights + k_major_step(i, Shape::rows),
                                            v + mn_major_step(i), true);
    }
    commit_products();
  }
  /// Waits for a product with V, behind which `later` other groups of products were issued, and
  /// gives back the half of V that it read.
  template <int later>
  __device__ __forceinline__ void finish_product(int stage) {
    wait_for_products<later>();
    hold(o_);
    release(stage, group);
  }

  /// Scores become weights, in registers.
  __device__ __forceinline__ bool weigh(const MlaWork& work, MlaSoftmax& softmax, int tile) {
    if (p_.factor != 1.0F) {
#pragma unroll
      for (float& x : s_) x *= p_.factor;
    }
    if constexpr (Shape::listed) {
      hide_unseen();
    } else {
      const int first_key = work.first_key + tile * Shape::tile_keys;
      if (first_key + Shape::tile_keys > work.all_see_to) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int n = work.first_row + row() + 8 * h;
          const int query = min(n / p_.sizes.group, work.unit.of.queries - 1);
          const int past = min(work.unit.of.reach.past_key(query), work.past_key);
          hide_scores(s_, h, past - first_key - 2 * (lane() % 4));
        }
      }
    }
    const bool rescales = softmax.weigh(s_, p_.c);
#pragma unroll
    for (int i = 0; i < Shape::tile_keys / 16; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        weights_[i][part] = packed<T>(s_[8 * i + 2 * part], s_[8 * i + 2 * part + 1]);
      }
    }
    return rescales;
  }
  /// Hides the keys of the tile that was scored last which a list's rows, all alike, do not see.
  __device__ __forceinline__ void hide_unseen() {
    const uint2 seen = shared_.seen(own, scored_ - 1);
    if ((seen.x & seen.y) == 0xffffffffU) return;
    const unsigned halves[2] = {seen.x >> 2 * (lane() % 4), seen.y >> 2 * (lane() % 4)};
#pragma unroll
    for (int i = 0; i < Shape::tile_keys / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if ((halves[i / 4] >> (i % 4 * 8 + j) & 1U) != 0) continue;
        s_[4 * i + j] = s_[4 * i + 2 + j] = -INFINITY;
      }
    }
  }
  /// Leaves weights and references for the other group.
  __device__ __forceinline__ void leave(const MlaSoftmax& softmax) const {
#pragma unroll
    for (int i = 0; i < Shape::tile_keys / 16; ++i) {
      store_matrices(
          shared_.weights() + swizzled_chunk(16 * warp() + lane() % 16, 2 * i + lane() / 16),
          weights_[i]);
    }
    if (lane() % 4 == 0) {
      shared_.references(group)[row()] = softmax.r[0];
      shared_.references(group)[row() + 8] = softmax.r[1];
    }
    fence_async_shared();
    arrive_named(Shape::left + group, both);
  }
  /// Waits for what the other group leaves. True where O must be rescaled.
  __device__ __forceinline__ bool take_over(MlaSoftmax& softmax) const {
    sync_named(Shape::left + 1 - group, both);
    const float* const references = shared_.references(1 - group);
    return softmax.follow(references[row()], references[row() + 8]);
  }
  __device__ __forceinline__ void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < Shape::group_columns / 2; ++i) o_[i] *= keep[i / 2 % 2];
  }

  /// Rescales O if the other group raised references, and issues the product of its tile.
  __device__ __forceinline__ void begin_other(MlaSoftmax& softmax) {
    if (take_over(softmax)) rescale(softmax.keep);
    issue_other();
  }

  /// Group 0: tiles 0, 2, ... are its own. Scores of the next one are issued behind the product of
  /// the other group's tile, as far as the other group need not have given anything back for them.
  __device__ __forceinline__ void attend_first(const MlaWork& work, MlaSoftmax& softmax) {
    const int tiles = work.tiles;
    if (tiles == 0) return;
    issue_scores<0, Shape::panels>(work, 0);
    finish_first(work, softmax, 0);
#pragma unroll 1
    for (int tile = 2; tile < tiles; tile += 2) {
      begin_other(softmax);
      issue_scores<0, Shape::early_panels>(work, tile);
      finish_product<1>(other);
      issue_scores<Shape::early_panels, Shape::panels>(work, tile);
      finish_first(work, softmax, tile);
    }
    if (tiles % 2 == 0) {
      begin_other(softmax);
      finish_product<0>(other);
    }
  }
  /// Weights and product of a tile whose scores are in flight. Nothing is behind it.
  __device__ __forceinline__ void finish_first(const MlaWork& work, MlaSoftmax& softmax, int tile) {
    wait_for_products<0>();
    hold(s_);
    release(own, Shape::no_values);
    const bool rescales = weigh(work, softmax, tile);
    leave(softmax);
    if (rescales) rescale(softmax.keep);
    issue_own();
    finish_product<0>(own);
  }

  /// Group 1: tiles 1, 3, ... are its own. It weighs one under the product of the tile before.
  __device__ __forceinline__ void attend_second(const MlaWork& work, MlaSoftmax& softmax) {
    const int tiles = work.tiles;
#pragma unroll 1
    for (int tile = 1; tile < tiles; tile += 2) {
      issue_scores<0, Shape::panels>(work, tile);
      if (take_over(softmax)) {
        wait_for_products<0>();  // ptxas would wait in any case
        hold(s_);
        rescale(softmax.keep);
      }
      issue_other();
      wait_for_products<1>();
      hold(s_);
      release(own, Shape::no_values);
      const bool rescales = weigh(work, softmax, tile);
      finish_product<0>(other);
      leave(softmax);
      if (rescales) rescale(softmax.keep);
      issue_own();
      finish_product<0>(own);
    }
    if (tiles % 2 != 0) {
      begin_other(softmax);
      finish_product<0>(other);
    }
  }

  /// Stores the group's half of O and, by the first group, what the rows' sums are.
  __device__ __forceinline__ void finish(const MlaWork& work, const MlaSoftmax& softmax) const {
    float sum[2] = {row_sum(softmax.l[0]), row_sum(softmax.l[1])};
    if (lane() % 4 == 0) {
      shared_.sums(group)[row()] = sum[0];
      shared_.sums(group)[row() + 8] = sum[1];
    }
    sync_named(Shape::meet, both);  // all products have read Q
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sum[h] = shared_.sums(0)[row() + 8 * h] + shared_.sums(1)[row() + 8 * h];
    }
    MlaOutput<Shape, group>(p_, shared_, work).store(o_, softmax.r, sum);
    __syncwarp();
  }

  const MlaParameters& p_;
  const MlaShared<Shape>& shared_;
  unsigned scored_ = 0;  ///< tiles of the block whose scores this group formed
  float s_[Shape::tile_keys / 2];
  float o_[Shape::group_columns / 2];
  unsigned weights_[Shape::tile_keys / 16][4];
};

}  // namespace attest
