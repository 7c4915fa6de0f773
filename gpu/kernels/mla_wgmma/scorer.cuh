#pragma once

// What the warpgroup does that scores for two others (MlaForm::scorer).
//
// Idea
//   O [64, 512] fills the registers of two warpgroups, so a third one forms scores and weights, and
//   runs ahead of them:
//
//     scorer                             multiplier g, for columns 256 g to 256 (g + 1)
//       each tile: S = Q K^T; weights(S)
//       leave P and references  ------>    O += P V, from shared memory
//       at the end leave sums   ------>    O / sums
//
//   Where p.overlaps P of a tile is given away when S of the next one is there: products of both
//   would otherwise share the tensor cores, and nobody use them while the scorer weighs.
// Resident
//   shared     Q [64, 64 q_shared], rings of K [64, 128] and [64, 64], P [weights, 64, 64]
//   registers  the other columns of Q, S [64, 64], P; r, l of the rows
// Waits
//   full       a panel of a key tile is read after its bytes have arrived
//   empty      columns that are no value are given back when S is there
//   weights    P's place is empty when both multipliers have read what was there
// Tails
//   As in consumer.cuh.

#include "gpu/kernels/mla_wgmma/scores.cuh"
#include "gpu/primitives/wgmma_begin.cuh"

namespace attest {

template <typename Shape>
class MlaScorer {
  using T = typename Shape::T;
  using Scores = MlaScores<Shape>;
  static constexpr int kept = 4 * (Shape::panels - Shape::q_shared);  ///< steps of Q in registers
  static constexpr int alone = 1;                                     ///< a named barrier

 public:
  __device__ __forceinline__ MlaScorer(const MlaParameters& p, const MlaShared<Shape>& shared)
      : p_(p), shared_(shared) {}

  __device__ __forceinline__ void run() {
    for (unsigned n = 0;; ++n) {
      shared_.work_full(n).wait(n / 2 % 2);
      const MlaWork& work = shared_.work(n);
      if (work.exists == 0) return;
      load_queries(work);
      sync_named(alone, warpgroup_threads);  // all of Q is there
      MlaSoftmax softmax;
      const int tiles = work.tiles;
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) {
        score(work, softmax, tile);
      }
      if (p_.overlaps && tiles > 0) give(left_ - 1);
      leave_sums(softmax);
      if (lane() == 0) shared_.work_empty(n).arrive();
    }
  }

 private:
  static __device__ __forceinline__ int lane() {
    return Scores::lane();
  }

  __device__ __forceinline__ void load_queries(const MlaWork& work) {
    const T* const queries = Scores::queries(p_, work);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x % warpgroup_threads);
         i < Shape::rows * 8 * Shape::q_shared; i += warpgroup_threads) {
      const int row = i / (8 * Shape::q_shared), chunk = i % (8 * Shape::q_shared);
      const bool is_there = row < work.rows;
      AsyncCopies::copy_or_zero<16>(
          shared_.q_panel(chunk / 8) + swizzled_chunk(row, chunk % 8),
          is_there ? Scores::query(p_, work, queries, row) + 8 * chunk : queries, is_there);
    }
    AsyncCopies::commit();
    if constexpr (kept > 0) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = Scores::row() + 8 * h;
        const bool is_there = row < work.rows;
        const T* const from = (is_there ? Scores::query(p_, work, queries, row) : queries) +
                              Shape::q_shared * panel_columns + 2 * (lane() % 4);
#pragma unroll
        for (int i = 0; i < kept; ++i) {
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            const auto& x = *reinterpret_cast<const unsigned*>(from + 16 * i + 8 * part);
            q_[i][2 * part + h] = is_there ? x : 0U;
          }
        }
      }
    }
    AsyncCopies::wait<0>();
    fence_async_shared();
  }

  __device__ __forceinline__ void score(const MlaWork& work, MlaSoftmax& softmax, int tile) {
    const unsigned n = tiles_++;
    if (work.keys_of(tile) < Shape::tile_keys) {
      Scores::clear_tail(shared_, n, work.keys_of(tile), alone);
    }
    issue_scores(n);
    wait_for_products<0>();
    hold(s_);
    if (lane() == 0) shared_.empty(n, Shape::value_parts).arrive();
    if (p_.overlaps && tile > 0) give(left_ - 1);
    unsigned weights[Scores::steps][4];
    (void)Scores::weigh(p_, work, softmax, tile, s_, weights);
    const unsigned left = left_++;
    shared_.weights_empty(left).wait(shared_.weights_parity(left) ^ 1U);
    Scores::store(shared_.weights(left), shared_.references(place(left)), softmax, weights);
    __syncwarp();
    if (!p_.overlaps) give(left);
  }

  /// Issues S = Q K^T, panel by panel as they arrive.
  __device__ __forceinline__ void issue_scores(unsigned n) {
#pragma unroll
    for (int turn = 0; turn < Shape::panels; ++turn) {
      const int part = Shape::part_in_turn(turn / Shape::part_panels);
      const int within = turn % Shape::part_panels, panel = part * Shape::part_panels + within;
      shared_.full(n, part, within).wait(shared_.parity(n, part));
      const MatrixDescriptor k =
          k_major_at(shared_.base + (shared_.part_at(n, part) + within * Shape::panel_bytes));
      fence_products();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const MatrixDescriptor of_step = k + k_major_step(i, Shape::tile_keys);
        if (panel >= Shape::q_shared) {
          issue_product<T, Major::k>(s_, q_[4 * (panel - Shape::q_shared) + i], of_step, true);
        } else {
          const MatrixDescriptor q =
              k_major_at(shared_.q_panel(0)) + k_major_step(4 * panel + i, Shape::rows);
          if (panel + i == 0) {
            begin_product<T, Major::k, Major::k>(s_, q, of_step);
          } else {
            issue_product<T, Major::k, Major::k>(s_, q, of_step, true);
          }
        }
      }
    }
    commit_products();
  }

  static __device__ __forceinline__ int place(unsigned left) {
    return static_cast<int>(left % Shape::weights);
  }
  /// Says that what was left is there.
  __device__ __forceinline__ void give(unsigned left) const {
    if (lane() == 0) shared_.weights_full(left).arrive();
  }
  /// Leaves the rows' sums of weights where references stand.
  __device__ __forceinline__ void leave_sums(const MlaSoftmax& softmax) {
    const float sum[2] = {row_sum(softmax.l[0]), row_sum(softmax.l[1])};
    const unsigned left = left_++;
    shared_.weights_empty(left).wait(shared_.weights_parity(left) ^ 1U);
    if (lane() % 4 == 0) {
      shared_.references(place(left))[Scores::row()] = sum[0];
      shared_.references(place(left))[Scores::row() + 8] = sum[1];
    }
    __syncwarp();
    give(left);
  }

  const MlaParameters& p_;
  const MlaShared<Shape>& shared_;
  unsigned tiles_ = 0;  ///< of the block, before the next one
  unsigned left_ = 0;   ///< so often something was left for the others
  float s_[Shape::tile_keys / 2];
  unsigned q_[kept > 0 ? kept : 1][4];
};

}  // namespace attest
