#pragma once

// What a warpgroup does that multiplies the weights of another one (scorer.cuh) with half of V.

#include "gpu/kernels/mla_wgmma/output.cuh"
#include "gpu/kernels/mla_wgmma/scores.cuh"

namespace attest {

template <typename Shape, int group>
class MlaMultiplier {
  using T = typename Shape::T;
  using Scores = MlaScores<Shape>;

 public:
  __device__ __forceinline__ MlaMultiplier(const MlaParameters& p, const MlaShared<Shape>& shared)
      : p_(p), shared_(shared) {}

  __device__ __forceinline__ void run() {
    for (unsigned n = 0;; ++n) {
      shared_.work_full(n).wait(n / 2 % 2);
      const MlaWork& work = shared_.work(n);
      if (work.exists == 0) return;
      MlaSoftmax softmax;  // of which l is the scorer's
#pragma unroll
      for (auto& part : o_) {
#pragma unroll
        for (float& x : part) x = 0.0F;
      }
      const int tiles = work.tiles;
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) add(softmax, tile + 1 == tiles);
      finish(work, softmax);
      if (tiles > 0) {
        release(0);
        release(1);
        ++tiles_;
      }
      if (lane() == 0) shared_.work_empty(n).arrive();
    }
  }

 private:
  static __device__ __forceinline__ int lane() {
    return Scores::lane();
  }

  /// Gives back a piece of this group's half of V.
  __device__ __forceinline__ void release(int piece) const {
    if (lane() == 0) shared_.empty(tiles_, 2 * group + piece).arrive();
  }
  /// What was left is read when all lanes have come here.
  __device__ __forceinline__ void give_back(unsigned taken) const {
    __syncwarp();
    if (lane() == 0) shared_.weights_empty(taken).arrive();
  }

  /// O += P V of the next tile. Of a unit's last one V is not given back.
  __device__ __forceinline__ void add(MlaSoftmax& softmax, bool is_last) {
    const unsigned taken = taken_++;
    shared_.weights_full(taken).wait(shared_.weights_parity(taken));
    const float* const references = shared_.references(static_cast<int>(taken % Shape::weights));
    if (softmax.follow(references[Scores::row()], references[Scores::row() + 8])) {
#pragma unroll
      for (auto& part : o_) {
#pragma unroll
        for (int i = 0; i < Shape::group_columns / 4; ++i) part[i] *= softmax.keep[i / 2 % 2];
      }
    }
    const MatrixDescriptor v =
        mn_major_at(shared_.base + shared_.part_at(tiles_, 2 * group), Shape::tile_keys);
    const MatrixDescriptor weights = k_major_at(shared_.weights(taken));
    hold(o_[0]);
    hold(o_[1]);
    fence_products();
#pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
#pragma unroll
      for (int i = 0; i < Scores::steps; ++i) {
        issue_product<T, Major::k, Major::mn>(
            o_[piece], weights + k_major_step(i, Shape::rows),
            v + (mn_major_step(i) + piece * (Shape::piece_bytes >> 4)), true);
      }
      commit_products();
    }
    wait_for_products<1>();
    if (!is_last) release(0);
    wait_for_products<0>();
    hold(o_[0]);
    hold(o_[1]);
    if (!is_last) {
      release(1);
      ++tiles_;
    }
    give_back(taken);
  }

  /// Stores the group's half of O by way of its pieces of the last tile, which nobody reads any
  /// more.
  __device__ __forceinline__ void finish(const MlaWork& work, const MlaSoftmax& softmax) {
    const unsigned taken = taken_++;
    shared_.weights_full(taken).wait(shared_.weights_parity(taken));
    const float* const sums = shared_.references(static_cast<int>(taken % Shape::weights));
    const float sum[2] = {sums[Scores::row()], sums[Scores::row() + 8]};
    give_back(taken);
    MlaOutput<Shape, group>(p_, shared_.base + shared_.part_at(tiles_, 2 * group), work)
        .store(o_, softmax.r, sum);
    fence_async_shared();  // the copy engine writes there next
    __syncwarp();
  }

  const MlaParameters& p_;
  const MlaShared<Shape>& shared_;
  unsigned tiles_ = 0;  ///< of the block, before this one
  unsigned taken_ = 0;  ///< so often something was taken that the scorer left
  /// In two parts: ptxas compiles no instruction that needs more registers than a thread of 512
  /// begins with (C7602).
  float o_[2][Shape::group_columns / 4];
};

}  // namespace attest
