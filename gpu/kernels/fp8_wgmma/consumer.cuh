#pragma once

// What a warpgroup that multiplies does: 64 query rows of each output tile of its block.
//
// Idea
//   S = Q K^T and T = P V are wgmma of e4m3, whose accumulator keeps 13 bits of fraction: a sum
//   over thousands of keys stands still in it (gpu/arithmetic). So P V of a key tile is a sum of
//   its own, and O = O keep + T is one fused multiply-add in fp32 for each element: promotion at
//   every key tile, inside the rescale that an online softmax does anyway.
//     S = Q K_0, P = weights(S)
//     each j > 0: issue S = Q K_j
//                 issue T = P V_(j-1)
//                 wait for S: weights(S), while T is formed
//                 wait for T: O = O keep + T, P = weights
//     T = P V_last, O = O keep + T
// Resident
//   shared     Q, K [Bc, D] and V transposed [D, Bc], e4m3; O on its way out
//   registers  S [64, Bc], T and O [64, D] and P of the warpgroup; r, l of the rows
// Legend
//   as in fa3_wgmma/consumer.cuh, whose loader, rings and output these are; P is 2^(c s - r) with
//   the reference r 8 below the largest score (softmax.cuh), c holds the scales of Q and K
// Limits
//   e4m3; O in fp16, bf16; masks none and causal. Arithmetic: hopper_fp8().

#include "gpu/kernels/fa3_wgmma/output.cuh"
#include "gpu/kernels/fa3_wgmma/ring_cursor.cuh"
#include "gpu/kernels/fp8_wgmma/parameters.cuh"
#include "gpu/kernels/fp8_wgmma/softmax.cuh"
#include "gpu/kernels/fp8_wgmma/transposer.cuh"
#include "gpu/primitives/delay.cuh"
#include "gpu/primitives/wgmma_codes.cuh"

namespace attest {

template <typename Shape>
struct Fp8Consumer : Fa3Thread {
  using Output = Fa3Output<Shape>;
  using Work = typename Shape::Work;
  static constexpr int D = Shape::D, Bc = Shape::Bc;

  const Fp8Parameters& p;
  Fa3RingCursor<Shape> cursor;
  float s[Bc / 2];
  float o[D / 2];
  float t[D / 2];
  unsigned weights[Bc / 32][4];

  __device__ __forceinline__ Fp8Consumer(const Fp8Parameters& p_, const Fa3Rings<Shape>& rings,
                                         int group)
      : p(p_), cursor(rings, group) {}

  __device__ __forceinline__ void run() {
    if (Shape::choice.ping_pong && cursor.group == Shape::consumers - 1) arrive_turn(0);
    for (;;) {
      const Work work = cursor.wait_for_work();
      if (work.count == Fa3Work::none_left) break;
      skip(work.skipped, work.count == 0 ? work.skipped - 1 : work.skipped);
      if (work.count == 0) {
        __syncwarp();  // all lanes have read the work
        Output{p, cursor}.store_nothing(work);
        cursor.release_q();
        ++cursor.q_tiles;
        continue;
      }
      Fp8Softmax softmax;
      attend(softmax, work);
    }
  }

 private:
  // Ping-pong: a group multiplies only in its turn. Barrier numbers are constants, for ptxas.
  __device__ __forceinline__ void wait_for_turn() const {
    if constexpr (Shape::choice.ping_pong) {
      if (cursor.group == 0) sync_named(Shape::first_turn, 2 * warpgroup_threads);
      if (cursor.group == 1) sync_named(Shape::first_turn + 1, 2 * warpgroup_threads);
    }
  }
  __device__ __forceinline__ void arrive_turn(int next) const {
    if (next == 0) arrive_named(Shape::first_turn, 2 * warpgroup_threads);
    if (next == 1) arrive_named(Shape::first_turn + 1, 2 * warpgroup_threads);
  }
  __device__ __forceinline__ void pass_turn() const {
    if constexpr (Shape::choice.ping_pong) arrive_turn(1 - cursor.group);
  }

  /// Gives the block's next key tiles back unread; passes on the turns that others wait for.
  __device__ __forceinline__ void skip(int tiles, int turns) {
#pragma unroll 1
    for (; tiles > 0; --tiles) {
      if (Shape::choice.ping_pong && tiles <= turns) {
        wait_for_turn();
        pass_turn();
      }
      cursor.skip_k(cursor.kv_tiles);
      cursor.wait_for_v(cursor.kv_tiles);
      __syncwarp();
      cursor.finish_key_tile();
    }
  }

  __device__ __forceinline__ void issue_scores(unsigned tile) {
    const MatrixDescriptor q = k_major_at(cursor.q_tile());
    const MatrixDescriptor k = k_major_at(cursor.k_tile(tile));
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      issue_e4m3_product(s, q + k_major_step(i, Shape::group_rows), k + k_major_step(i, Bc), i > 0);
    }
  }
  __device__ __forceinline__ void issue_values(unsigned tile) {
    const MatrixDescriptor v = k_major_at(cursor.v_tile(tile));
#pragma unroll
    for (int i = 0; i < Bc / 32; ++i) {
      issue_e4m3_product(t, weights[i], v + k_major_step(i, D), i > 0);
    }
  }
  __device__ __forceinline__ void hold_weights() {
#pragma unroll
    for (int i = 0; i < Bc / 32; ++i) hold(weights[i]);
  }

  /// Keys of one step of P V are 32; transposer.cuh says in which order.
  __device__ __forceinline__ void pack_weights() {
#pragma unroll
    for (int i = 0; i < Bc / 32; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int at = 16 * i + part / 2 * 8 + part % 2 * 2;
        weights[i][part] = packed_e4m3(s[at], s[at + 1], s[at + 4], s[at + 5]);
      }
    }
  }
  __device__ __forceinline__ void promote(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < D / 2; ++i) o[i] = fmaf(o[i], keep[i / 2 % 2], t[i]);
  }

  /// Scores of keys of tile `tile` that a row does not see become -inf.
  __device__ __forceinline__ void mask(int tile) {
    const int row = Output::row_of(cursor.work());
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int past = p.past_key(min(row + 8 * h, p.queries - 1));
      hide_scores(s, h, past - tile * Bc - 2 * (lane() % 4));
    }
  }

  /// Factors of the scores of a tile, by row.
  struct ScoreScales {
    float of_row[2];
    const float* of_head;  ///< K's; null: all are 1
    float next = 1.0F;     ///< K's, of the tile that comes next

    __device__ __forceinline__ ScoreScales(const Fp8Parameters& p, const Work& work, int tile)
        : of_head(p.k_scales.of_head(work.entry, work.kv_head)) {
      const int row = Output::row_of(work);
      const float* const of_query = p.q_scales.of_head(work.entry, work.head);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        of_row[h] = p.q_scales.at(of_query, max(0, min(row + 8 * h, p.queries - 1))) * p.c;
      }
      look_ahead(p, tile);
    }
    __device__ __forceinline__ void look_ahead(const Fp8Parameters& p, int tile) {
      next = p.k_scales.at(of_head, max(0, tile) * Bc);
    }
  };

  /// Scores of key tile `tile` become weights.
  __device__ __forceinline__ void weigh(Fp8Softmax& softmax, ScoreScales& scales, int tile,
                                        int masked) {
    const float of_tile = scales.next;
    scales.look_ahead(p, tile - 1);
    float c[2] = {scales.of_row[0] * of_tile, scales.of_row[1] * of_tile};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (c[h] > 0.0F) continue;
        // A maximum of scores is one of their products with a positive number alone.
#pragma unroll
      for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) element(s, j, h, e) *= c[h];
      }
      c[h] = 1.0F;
    }
    if (tile >= masked) mask(tile);
    softmax.weigh(s, c);
  }

  __device__ __forceinline__ void attend(Fp8Softmax& softmax, const Work& work) {
    int tile = work.first + work.count - 1;
    const int masked = __shfl_sync(0xffffffffU, p.past_key(work.row) / Bc, 0);
    ScoreScales scales(p, work, tile);
#pragma unroll
    for (float& x : o) x = 0.0F;
    form_scores(cursor.kv_tiles);
    weigh(softmax, scales, tile, masked);
    pack_weights();
#pragma unroll 1
    for (int left = work.count - 1; left > 0; --left) {
      if constexpr (Shape::choice.overlap) {
        step(softmax, scales, --tile, masked);
      } else {
        add_values(softmax.keep);
        form_scores(cursor.kv_tiles);
        weigh(softmax, scales, --tile, masked);
        pack_weights();
      }
    }
    cursor.release_q();
    ++cursor.q_tiles;
    add_values(softmax.keep);
    scale_output(cursor.last_work());
    Output{p, cursor}.store(o, softmax);
  }

  __device__ __forceinline__ void form_scores(unsigned tile) {
    cursor.wait_for_k(tile);
    maybe_pause<Shape>(p.delay_seed);
    hold(s);
    fence_products();
    issue_scores(tile);
    commit_products();
    wait_for_products<0>();
    hold(s);
    cursor.release_k(tile);
  }
  /// O = O keep + P V of the current key tile.
  __device__ __forceinline__ void add_values(const float (&keep)[2]) {
    cursor.wait_for_v(cursor.kv_tiles);
    maybe_pause<Shape>(p.delay_seed);
    hold(t);
    hold_weights();
    fence_products();
    issue_values(cursor.kv_tiles);
    commit_products();
    wait_for_products<0>();
    hold(t);
    hold_weights();
    cursor.finish_key_tile();
    promote(keep);
  }

  /// Issues S of this key tile and P V of the one before, and weighs S while P V runs.
  __device__ __forceinline__ void step(Fp8Softmax& softmax, ScoreScales& scales, int tile,
                                       int masked) {
    cursor.wait_for_k(cursor.kv_tiles + 1);
    maybe_pause<Shape>(p.delay_seed);
    wait_for_turn();
    hold(s);
    hold(t);
    hold_weights();
    fence_products();
    issue_scores(cursor.kv_tiles + 1);
    commit_products();
    cursor.wait_for_v(cursor.kv_tiles);
    fence_products();
    issue_values(cursor.kv_tiles);
    commit_products();
    pass_turn();
    wait_for_products<1>();
    hold(s);
    cursor.release_k(cursor.kv_tiles + 1);
    const float keep[2] = {softmax.keep[0], softmax.keep[1]};
    weigh(softmax, scales, tile, masked);
    hold(s);
    wait_for_products<0>();
    hold(t);
    hold_weights();
    cursor.finish_key_tile();
    maybe_pause<Shape>(p.delay_seed);
    promote(keep);
    pack_weights();
  }

  __device__ __forceinline__ void scale_output(const Work& work) {
    if (p.v_scales == nullptr) return;
    const float* const of_head = p.v_scales + p.v_scale_strides.offset(work.entry, work.kv_head, 0);
#pragma unroll
    for (int j = 0; j < D / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = min(fp8_column(j, lane() % 4, e), p.columns - 1);
        const float scale = of_head[column * p.v_scale_step];
        element(o, j, 0, e) *= scale;
        element(o, j, 1, e) *= scale;
      }
    }
  }
};

}  // namespace attest
