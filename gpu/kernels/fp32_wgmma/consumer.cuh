#pragma once

// What a warpgroup does with its 64 query rows.
//
// Idea
//   S = Q K^T from parts of 16 bits (parts.cuh), the small products first; without overlap the
//   second half of the products of hi and hi has an accumulator of its own.
//   Weights are split like the inputs. P V of every 64 keys goes to an accumulator of its own and
//   is added to O by one fused multiply-add with the rescaling factor: the tensor core cuts what it
//   adds instead of rounding it, so a long chain there would drift towards 0.
// Resident
//   shared     parts of Q [Br, D], of K and V [stages, Bc, D]
//   registers  S [64, Bc], parts of P, O [64, D] and what the last keys add to it
// Scales
//   fp16 parts are those of 2^e times a number: e is a query row's own, and that of 64 keys
//   (split.cuh). c, of every row and key block, undoes both in the exponent. O is kept in units of
//   2^-e of the last V; the change to the next unit is part of the rescaling factor. Powers of two
//   round nothing, so no row's bits hang on keys that it does not see.
// Order, with overlap
//   Q K^T of the next keys is issued before P V of these; their softmax runs under the latter.
//   With ping_pong warpgroups take turns at issuing.

#include <cstdint>

#include "gpu/kernels/fp32_wgmma/gather.cuh"
#include "gpu/kernels/fp32_wgmma/output.cuh"
#include "gpu/kernels/fp32_wgmma/parts.cuh"
#include "gpu/kernels/fp32_wgmma/products.cuh"
#include "gpu/kernels/fp32_wgmma/shared.cuh"
#include "gpu/kernels/fp32_wgmma/softmax.cuh"

namespace attest {

template <typename Shape>
class SplitConsumer {
 public:
  /// `group` counts the warpgroups that multiply, `first_row`, of the tile, as rows_of() does.
  __device__ __forceinline__ SplitConsumer(const SplitProblem& p, const SplitShared<Shape>& shared,
                                           int head, int group, int first_row)
      : p_(p), shared_(shared), head_(head), group_(group) {
    const int thread = static_cast<int>(threadIdx.x) % warpgroup_threads;
    lane_ = thread % 32;
    const int group_row = first_row + group * Shape::group_rows;
    warp_row_ = group_row + thread / 32 * 16;
    const std::int64_t row0 = static_cast<std::int64_t>(head) * p.queries;
    // Rows past the end see what the last one sees.
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row_at<Parts>(p, head, min(place_of(h), rows_of<Parts>(p, head) - 1));
      past_[h] = p.past_key(row);
      c_[h] = p.c;
      if constexpr (is_scaled) {
        const RowScale scale = p.rows[row0 + row];
        c_[h] *= scale.factor;
        reach_[h] = scale.reach;
      }
    }
    all_past_ = p.past_key(row_at<Parts>(p, head, min(group_row, rows_of<Parts>(p, head) - 1)));
    if constexpr (is_scaled)
      key_scales_ = p.key_scales + static_cast<std::int64_t>(p.kv_head_of(head)) * p.key_blocks();
    q_base_ = k_major_at(shared.q() + group * Shape::group_rows * panel_row_bytes);
    k_base_ = k_major_at(shared.k());
    v_base_ = mn_major_at(shared.v(), Bc);
#pragma unroll
    for (float& x : o_) x = 0.0F;
  }

  /// All keys that some row of the block sees. Rows that are for the other parts are not written.
  __device__ __forceinline__ void run(int key_tiles) {
    shared_.q_full().wait(0);
    if (key_tiles > 0) {
      if constexpr (Shape::choice.overlap)
        run_overlapped(key_tiles);
      else
        run_in_turn(key_tiles);
    }
    finish();
  }

 private:
  using Parts = typename Shape::Parts;
  using Products = SplitProducts<Shape>;
  static constexpr int D = Shape::D, Bc = Shape::Bc, blocks = Bc / split_rows;
  static constexpr int slices = D / Shape::o_columns;
  static constexpr bool is_scaled = Parts::is_scaled;

  __device__ __forceinline__ void run_in_turn(int key_tiles) {
#pragma unroll 1
    for (int n = 0; n < key_tiles; ++n) {
      shared_.k_full(k_stage_).wait(k_parity_);
      take_turn();
      issue_scores();
      end_turn();
      fetch_scales(n);
      wait_for_products<0>();
      weigh(n);
      split_weights();
      multiply_values();
    }
  }

  __device__ __forceinline__ void run_overlapped(int key_tiles) {
    shared_.k_full(0).wait(0);
    issue_scores();
    fetch_scales(0);
    wait_for_products<0>();
    weigh(0);
    split_weights();
#pragma unroll 1
    for (int n = 1; n < key_tiles; ++n) {
      shared_.k_full(k_stage_).wait(k_parity_);
      take_turn();
      issue_scores();
      shared_.v_full(v_stage_).wait(v_parity_);
      issue_values(0, 0);
      end_turn();
      fetch_scales(n);
      wait_for_products<1>();
      weigh(n);
      wait_for_products<0>();
      release_values();
      add_values(0, 0);
      split_weights();
    }
    multiply_values();
  }

  __device__ __forceinline__ void issue_scores() {
    maybe_pause<Shape>(0);
    Products::issue_scores(s_, late_s_, q_base_, k_base_ + (k_stage_ * Shape::k_bytes >> 4));
  }
  /// Issues P V of the tile's 64 keys `block` for columns `slice` of O.
  __device__ __forceinline__ void issue_values(int block, int slice) {
    Products::issue_values(x_, small_x_, w_, v_base_ + (v_stage_ * Shape::k_bytes >> 4), block,
                           slice);
  }

  __device__ __forceinline__ void add_values(int block, int slice) {
    hold(x_);
    if constexpr (Shape::two_value_chains) {
      hold(small_x_);
#pragma unroll
      for (int i = 0; i < Shape::o_columns / 2; ++i) x_[i] += small_x_[i];
    }
#pragma unroll
    for (int i = 0; i < Shape::o_columns / 2; ++i) {
      float& o = o_[slice * Shape::o_columns / 2 + i];
      o = fmaf(o, keep_[block][i / 2 % 2], x_[i]);
    }
  }

  __device__ __forceinline__ void multiply_values() {
    shared_.v_full(v_stage_).wait(v_parity_);
    maybe_pause<Shape>(0);
#pragma unroll
    for (int i = 0; i < blocks * slices; ++i) {
      issue_values(i / slices, i % slices);
      wait_for_products<0>();
      add_values(i / slices, i % slices);
    }
    release_values();
  }

  __device__ __forceinline__ void release_values() {
    if (lane_ == 0) shared_.v_empty(v_stage_).arrive();
    if (++v_stage_ == Shape::stages) v_stage_ = 0, v_parity_ ^= 1;
  }

  /// S, which has arrived, becomes weights; K is not needed any more.
  __device__ __forceinline__ void weigh(int n) {
    hold(s_);
    if constexpr (Shape::two_score_chains) {
      hold(late_s_);
#pragma unroll
      for (int i = 0; i < Bc / 2; ++i) s_[i] += late_s_[i];
    }
    if (lane_ == 0) shared_.k_empty(k_stage_).arrive();
    if (++k_stage_ == Shape::stages) k_stage_ = 0, k_parity_ ^= 1;
    float c[2][blocks];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int b = 0; b < blocks; ++b) {
        if constexpr (is_scaled) {
          // Positive, so that a hidden score stays hidden; smaller ones make no difference.
          c[h][b] = fmaxf(c_[h] * scales_[b].k_factor, 0x1p-126F);
          if (refuses(scales_[b], past_[h] - n * Bc - b * split_rows, reach_[h]))
            reach_[h] = INFINITY;
        } else {
          c[h][b] = 1.0F;
        }
      }
    }
    if constexpr (!is_scaled) softmax_.multiply(s_, p_.c);
    if ((n + 1) * Bc > all_past_) {
      const int first = n * Bc + 2 * (lane_ % 4);
      const int past[2] = {past_[0] - first, past_[1] - first};
      softmax_.hide(s_, past);
    }
    softmax_.weigh(s_, c);
  }

  /// The weights of the last tile as parts, and the factors with which O takes what they bring.
  __device__ __forceinline__ void split_weights() {
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
      float change = 1.0F;
      if constexpr (is_scaled) {
        change = unit_ * inverse_power(scales_[b].v_factor);
        unit_ = scales_[b].v_factor;
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) keep_[b][h] = b == 0 ? softmax_.keep[h] * change : change;
    }
#pragma unroll
    for (int k = 0; k < Bc / 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        unsigned parts[Parts::count];
        Parts::split(s_[8 * k + 2 * i], s_[8 * k + 2 * i + 1], parts);
#pragma unroll
        for (int part = 0; part < Parts::count; ++part) w_[part][k][i] = parts[part];
      }
    }
  }

  __device__ __forceinline__ void fetch_scales(int n) {
    if constexpr (is_scaled) {
#pragma unroll
      for (int b = 0; b < blocks; ++b) scales_[b] = key_scales_[block_of(n, b)];
    }
  }

  /// The 64 keys `b` of tile n; the last tile may be the end of fewer.
  __device__ __forceinline__ int block_of(int n, int b) const {
    return Bc == split_rows ? n : min(n * blocks + b, p_.key_blocks() - 1);
  }

  __device__ __forceinline__ void take_turn() const {
    if constexpr (Shape::choice.ping_pong)
      sync_named(Shape::first_turn + group_, 2 * warpgroup_threads);
  }
  __device__ __forceinline__ void end_turn() const {
    if constexpr (Shape::choice.ping_pong)
      arrive_named(Shape::first_turn + (group_ + 1) % Shape::consumers, 2 * warpgroup_threads);
  }

  __device__ __forceinline__ int place_of(int h) const {
    return warp_row_ + lane_ / 4 + 8 * h;
  }

  __device__ __forceinline__ void finish() {
    float l[2];
    bool writes[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      l[h] = row_sum(softmax_.l[h]);
      writes[h] = place_of(h) < rows_of<Parts>(p_, head_);
    }
    if (is_scaled && warp_row_ < p_.queries) {
      const bool refused[2] = {writes[0] && is_refused(reach_[0], past_[0], l[0]),
                               writes[1] && is_refused(reach_[1], past_[1], l[1])};
      flag_refused(p_, head_, warp_row_, refused, writes);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float divisor = divisor_of(l[h]), factor = 1.0F / divisor;
#pragma unroll
      for (int i = 0; i < D / 4; ++i) {
        float& o = o_[i / 2 * 4 + 2 * h + i % 2];
        o = is_scaled ? o * unit_ * factor : o / divisor;  // few rows have bf16 parts
      }
      if (!writes[h]) continue;
      const int row = row_at<Parts>(p_, head_, place_of(h));
      store_row(p_, head_, row, h, o_, log_sum_exp2(softmax_.r[h], l[h]));
    }
  }

  const SplitProblem& p_;
  const SplitShared<Shape> shared_;
  const int head_, group_;
  int lane_, warp_row_;
  int past_[2], all_past_;  ///< keys below are seen: by a row, by all rows of the warpgroup
  float c_[2];
  float reach_[2] = {0.0F, 0.0F};  ///< infinite: the row is for the other parts
  const KeyScale* key_scales_ = nullptr;
  MatrixDescriptor q_base_, k_base_, v_base_;
  int k_stage_ = 0, v_stage_ = 0;
  unsigned k_parity_ = 0, v_parity_ = 0;

  SplitSoftmax<Shape> softmax_;
  float late_s_[Bc / 2], small_x_[Shape::o_columns / 2];
  float s_[Bc / 2], o_[D / 2], x_[Shape::o_columns / 2];
  unsigned w_[Parts::count][Bc / 16][4];
  float keep_[blocks][2];
  float unit_ = 1.0F;  ///< O is o_ times it
  KeyScale scales_[blocks] = {};
};

}  // namespace attest
