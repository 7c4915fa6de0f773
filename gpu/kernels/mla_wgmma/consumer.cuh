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
//     S = Q K_0, P_0 = weights(S)               issue S = Q K_1
//     leave P_0 and references       -------->  issue O += P_0 V_0 from shared memory
//     O += P_0 V_0 from registers               P_1 = weights(S)
//                                    <--------  leave P_1 and references
//     O += P_1 V_1 from shared memory           O += P_1 V_1 from registers
//
//   P has one place in shared memory: who leaves a P has read the one before.
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
//   then their rows of the tile, which hold anything, become zeros before they are multiplied.

#include "gpu/kernels/mla_wgmma/output.cuh"
#include "gpu/kernels/mla_wgmma/scores.cuh"

namespace attest {

/// One warpgroup that multiplies.
template <typename Shape, int group>
class MlaConsumer {
  using T = typename Shape::T;
  using Scores = MlaScores<Shape>;
  static constexpr int both = Shape::groups * warpgroup_threads;
  /// Named barriers: of both groups; P of the first and of the second group; of each group alone.
  static constexpr int meet = 1, left = 2, alone = 4;

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
      sync_named(meet, both);  // all of Q is there
      const int tiles = work.tiles;
#pragma unroll 1
      for (int tile = 0; tile + 1 < tiles; tile += 2) {
        if constexpr (group == 0) {
          own_first(work, softmax, tile);
          add_other(softmax, tile + 1);
        } else {
          own_second(work, softmax, tile);
        }
      }
      if (tiles % 2 != 0) {
        if constexpr (group == 0) {
          own_first(work, softmax, tiles - 1);
        } else {
          add_other(softmax, tiles - 1);
        }
      }
      tiles_ += static_cast<unsigned>(tiles);
      finish(work, softmax);
      if (lane() == 0) shared_.work_empty(n).arrive();
    }
  }

 private:
  static __device__ __forceinline__ int lane() {
    return Scores::lane();
  }
  static __device__ __forceinline__ int warp() {
    return Scores::warp();
  }
  static __device__ __forceinline__ int row() {
    return Scores::row();
  }

  /// A tile of the unit, counted through the block.
  __device__ __forceinline__ unsigned number(int tile) const {
    return tiles_ + static_cast<unsigned>(tile);
  }
  __device__ __forceinline__ void release(int tile, int part) const {
    if (lane() == 0) shared_.empty(number(tile), part).arrive();
  }

  /// Every warp loads 16 rows of its group's panels, where it left rows of O before, and some of
  /// the last panel. Rows that there are not become zeros.
  __device__ __forceinline__ void load_queries(const MlaWork& work) const {
    const T* const queries = Scores::queries(p_, work);
    const auto copy = [&](int row, int panel, int chunk) {
      const bool is_there = row < work.rows;
      AsyncCopies::copy_or_zero<16>(
          shared_.q_panel(panel) + swizzled_chunk(row, chunk),
          is_there ? Scores::query(p_, work, queries, row) + panel * panel_columns + chunk * 8
                   : queries,
          is_there);
    };
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
      copy(16 * warp() + i, Shape::first_panel(group) + lane() / 8, lane() % 8);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      copy(16 * warp() + 8 * group + i + lane() / 8, Shape::panels - 1, lane() % 8);
    }
    AsyncCopies::commit();
    AsyncCopies::wait<0>();
    fence_async_shared();
  }

  /// Issues S = Q K^T, panel by panel as they arrive. Of a tile at the end of the entry rows past
  /// its keys become zeros first.
  __device__ __forceinline__ void issue_scores(const MlaWork& work, int tile) {
    const unsigned n = number(tile);
    if (work.keys_of(tile) < Shape::tile_keys) {
      Scores::clear_tail(shared_, n, work.keys_of(tile), alone + group);
    }
    const MatrixDescriptor q = k_major_at(shared_.q_panel(0));
    hold(s_);
#pragma unroll
    for (int part = 0; part < Shape::parts; ++part) {
      const MatrixDescriptor k = k_major_at(shared_.base + shared_.part_at(n, part));
      const int first = Shape::first_panel(part);
#pragma unroll
      for (int panel = first; panel < Shape::past_panel(part); ++panel) {
        shared_.full(n, part, panel - first).wait(shared_.parity(n, part));
        fence_products();
#pragma unroll
        for (int i = 4 * panel; i < 4 * panel + 4; ++i) {
          issue_product<T, Major::k, Major::k>(s_, q + k_major_step(i, Shape::rows),
                                               k + k_major_step(i - 4 * first, Shape::tile_keys),
                                               i > 0);
        }
      }
    }
    commit_products();
  }

  __device__ __forceinline__ MatrixDescriptor values_of(int tile) const {
    return mn_major_at(shared_.base + shared_.part_at(number(tile), group), Shape::tile_keys);
  }
  /// Issues O += P V with this group's weights, in registers.
  __device__ __forceinline__ void issue_own(int tile) {
    const MatrixDescriptor v = values_of(tile);
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
  /// The same with the other group's, in shared memory.
  __device__ __forceinline__ void issue_other(int tile) {
    const MatrixDescriptor v = values_of(tile), weights = k_major_at(shared_.weights());
    hold(o_);
    fence_products();
#pragma unroll
    for (int i = 0; i < Shape::tile_keys / 16; ++i) {
      issue_product<T, Major::k, Major::mn>(o_, weights + k_major_step(i, Shape::rows),
                                            v + mn_major_step(i), true);
    }
    commit_products();
  }

  __device__ __forceinline__ bool weigh(const MlaWork& work, MlaSoftmax& softmax, int tile) {
    return Scores::weigh(p_, work, softmax, tile, s_, weights_);
  }
  /// Leaves weights and references for the other group.
  __device__ __forceinline__ void leave(const MlaSoftmax& softmax) const {
    Scores::store(shared_.weights(), shared_.references(group), softmax, weights_);
    arrive_named(left + group, both);
  }
  /// Waits for what the other group leaves. True where O must be rescaled.
  __device__ __forceinline__ bool take_over(MlaSoftmax& softmax) const {
    sync_named(left + 1 - group, both);
    const float* const references = shared_.references(1 - group);
    return softmax.follow(references[row()], references[row() + 8]);
  }
  __device__ __forceinline__ void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < Shape::group_columns / 2; ++i) o_[i] *= keep[i / 2 % 2];
  }

  /// Group 0: scores, weights and product of a tile of its own. Nothing is in flight, before and
  /// behind it.
  __device__ __forceinline__ void own_first(const MlaWork& work, MlaSoftmax& softmax, int tile) {
    issue_scores(work, tile);
    wait_for_products<0>();
    hold(s_);
    release(tile, Shape::value_parts);
    const bool rescales = weigh(work, softmax, tile);
    leave(softmax);
    if (rescales) rescale(softmax.keep);
    issue_own(tile);
    wait_for_products<0>();
    hold(o_);
    release(tile, group);
  }
  /// The product of a tile of the other group's.
  __device__ __forceinline__ void add_other(MlaSoftmax& softmax, int tile) {
    if (take_over(softmax)) rescale(softmax.keep);
    issue_other(tile);
    wait_for_products<0>();
    hold(o_);
    release(tile, group);
  }
  /// Group 1: the product of tile `tile`, which is the other group's, and all of the next one.
  __device__ __forceinline__ void own_second(const MlaWork& work, MlaSoftmax& softmax, int tile) {
    issue_scores(work, tile + 1);
    if (take_over(softmax)) {
      wait_for_products<0>();  // ptxas would wait in any case
      hold(s_);
      rescale(softmax.keep);
    }
    issue_other(tile);
    wait_for_products<1>();
    hold(s_);
    release(tile + 1, Shape::value_parts);
    const bool rescales = weigh(work, softmax, tile + 1);
    wait_for_products<0>();
    hold(o_);
    release(tile, group);
    leave(softmax);
    if (rescales) rescale(softmax.keep);
    issue_own(tile + 1);
    wait_for_products<0>();
    hold(o_);
    release(tile + 1, group);
  }

  /// Stores the group's half of O and, by the first group, what the rows' sums are.
  __device__ __forceinline__ void finish(const MlaWork& work, const MlaSoftmax& softmax) const {
    float sum[2] = {row_sum(softmax.l[0]), row_sum(softmax.l[1])};
    if (lane() % 4 == 0) {
      shared_.sums(group)[row()] = sum[0];
      shared_.sums(group)[row() + 8] = sum[1];
    }
    sync_named(meet, both);  // all products have read Q
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sum[h] = shared_.sums(0)[row() + 8 * h] + shared_.sums(1)[row() + 8 * h];
    }
    MlaOutput<Shape, group>(p_, shared_.q_panel(Shape::first_panel(group)), work)
        .store(o_, softmax.r, sum);
    __syncwarp();
  }

  const MlaParameters& p_;
  const MlaShared<Shape>& shared_;
  unsigned tiles_ = 0;  ///< of the block, in units before this one
  float s_[Shape::tile_keys / 2];
  float o_[Shape::group_columns / 2];
  unsigned weights_[Shape::tile_keys / 16][4];
};

}  // namespace attest
