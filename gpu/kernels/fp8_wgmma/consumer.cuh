#pragma once

// What a warpgroup that multiplies does: 64 query rows of each output tile of its block.
//
// Idea
//   S = Q K^T and T = P V are wgmma of e4m3, whose accumulator keeps 13 bits of fraction: a sum
//   over thousands of keys stands still in it (gpu/arithmetic). So P V of a key tile is a sum of
//   its own, and O += T in fp32: promotion at every key tile.
//     S = Q K_0, P = weights(S)
//     each j > 0: issue S = Q K_j
//                 issue T = P V_(j-1)
//                 wait for S: weights(S) below the references that there are, while T is formed
//                 wait for T: O += T, P = weights
//                 only where some weight is too large: S once more, larger references, rescale O
//     T = P V_last, O += T
//   The softmax costs more instructions than issue slots are free beside it, so a tile's maximum is
//   not looked for: a reference lags until weights near the end of e4m3 (softmax.cuh).
// Resident
//   shared     Q, K [Bc, D] and V transposed [D, Bc], e4m3; O on its way out
//   registers  S [64, Bc], T and O [64, D] and P of the warpgroup; r, l of the rows
// Legend
//   as in fa3_wgmma/consumer.cuh, whose loader, rings and output these are; P is 2^(c s - r), c
//   holds the scales of Q and K
// Limits
//   e4m3; O in fp16, bf16; masks none and causal. Arithmetic: hopper_fp8().

#include "gpu/kernels/fa3_wgmma/output.cuh"
#include "gpu/kernels/fa3_wgmma/ring_cursor.cuh"
#include "gpu/kernels/fp8_wgmma/parameters.cuh"
#include "gpu/kernels/fp8_wgmma/scores_again.cuh"
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

  /// Packs the weights of some rows. Keys of one step of P V are 32; transposer.cuh says in which
  /// order.
  __device__ __forceinline__ void pack_weights(const bool (&of_row)[2]) {
#pragma unroll
    for (int i = 0; i < Bc / 32; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int at = 16 * i + part / 2 * 8 + part % 2 * 2;
        const unsigned packed = packed_e4m3(s[at], s[at + 1], s[at + 4], s[at + 5]);
        weights[i][part] = of_row[part % 2] ? packed : weights[i][part];
      }
    }
  }
  __device__ __forceinline__ void promote() {
#pragma unroll
    for (int i = 0; i < D / 2; ++i) o[i] += t[i];
  }
  __device__ __forceinline__ void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < D / 2; ++i) o[i] *= keep[i / 2 % 2];
  }

  /// The first key tile that some row of the group does not see as a whole.
  __device__ __forceinline__ int first_masked() const {
    return __shfl_sync(0xffffffffU, p.past_key(cursor.work().row) / Bc, 0);
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

  /// Finds what multiplies the scores of key tile `tile`, by row: scale * log2(e), scales of Q and
  /// K.
  __device__ __forceinline__ void find_factors(const Work& work, int tile, float (&c)[2]) const {
    const int row = Output::row_of(work);
    const float* const of_query = p.q_scales.of_head(work.entry, work.head);
    const float* const of_key = p.k_scales.of_head(work.entry, work.kv_head);
    const float of_tile = p.k_scales.at(of_key, max(0, tile) * Bc) * p.c;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      c[h] = p.q_scales.at(of_query, max(0, min(row + 8 * h, p.queries - 1))) * of_tile;
    }
  }

  /// Scores of key tile `tile`, the block's `n`th, become packed weights of P; `factors` are its
  /// own and then those of the tile that comes next. K of the tile is released. Where P V of the
  /// tile before is `in_flight`, it is waited for and goes into O.
  template <bool in_flight>
  __device__ __forceinline__ void weigh(Fp8Softmax& softmax, float (&factors)[2], int tile,
                                        unsigned n) {
    float c[2] = {factors[0], factors[1]};
    const bool is_usual = __all_sync(0xffffffffU, c[0] > 0.0F && c[1] > 0.0F);
    bool seen[2] = {true, true}, is_done = false;
    float sum[2] = {0.0F, 0.0F};
    if (is_usual && tile < softmax.seen_from) {
      softmax.template weigh_unseen<0, Bc / 4>(s, c, sum);
      await_next(tile, n);
      settle<in_flight>();
      softmax.template weigh_unseen<Bc / 4, Bc / 2>(s, c, sum);
      pack_weights({true, true});
      is_done = softmax.takes(sum);
      if (!is_done) {
        softmax.find_misfits(sum, lane(), seen);
        form_scores_of_codes_again<D, Bc>(s, cursor.q_tile() + 16 * panel_row_bytes * warp(),
                                          cursor.k_tile(n), lane());
      }
    } else {
      scale_by_negative(c);
      if (tile >= first_masked()) mask(tile);
      await_next(tile, n);
      settle<in_flight>();
    }
    if (!is_done) {
      if (softmax.weigh(s, c, seen, sum)) rescale(softmax.keep);
      pack_weights(seen);
      softmax.seen_from = softmax.is_special ? 0 : min(tile, first_masked() - 1);
    }
    cursor.release_k(n);
    // Where tiles have scales of their own.
    if (p.k_scales.shift < 31) find_factors(cursor.work(), tile - 1, factors);
  }

  /// Waits for K of the tile that comes next, if one does: they end at 0, as there are no splits.
  /// Also a branch, behind which ptxas moves few weights.
  __device__ __forceinline__ void await_next(int tile, unsigned n) const {
    if (Shape::choice.overlap && tile > 0) cursor.wait_for_k(n + 1);
  }

  /// A maximum of scores is one of their products with a positive number alone.
  __device__ __forceinline__ void scale_by_negative(float (&c)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (c[h] > 0.0F) continue;
#pragma unroll
      for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) element(s, j, h, e) *= c[h];
      }
      c[h] = 1.0F;
    }
  }

  __device__ __forceinline__ void attend(Fp8Softmax& softmax, const Work& work) {
    int tile = work.first + work.count - 1;
    float factors[2];
    find_factors(work, tile, factors);
#pragma unroll
    for (float& x : o) x = 0.0F;
    if constexpr (Shape::choice.overlap) {
      form_scores(cursor.kv_tiles);
      weigh<false>(softmax, factors, tile, cursor.kv_tiles);
#pragma unroll 1
      for (int left = work.count - 1; left > 0; --left) step(softmax, factors, --tile);
      cursor.release_q();
      add_values();
    } else {
#pragma unroll 1
      for (int left = work.count; left > 0; --left) {
        form_scores(cursor.kv_tiles);
        weigh<false>(softmax, factors, tile--, cursor.kv_tiles);
        add_values();
      }
      cursor.release_q();
    }
    ++cursor.q_tiles;
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
  }
  /// Adds P V of the current key tile to O.
  __device__ __forceinline__ void add_values() {
    cursor.wait_for_v(cursor.kv_tiles);
    maybe_pause<Shape>(p.delay_seed);
    hold(t);
    hold_weights();
    fence_products();
    issue_values(cursor.kv_tiles);
    commit_products();
    settle<true>();
  }
  /// Waits for the product T = P V, where one is in flight, and adds it to O.
  template <bool in_flight>
  __device__ __forceinline__ void settle() {
    if constexpr (!in_flight) return;
    wait_for_products<0>();
    hold(t);
    hold_weights();
    cursor.finish_key_tile();
    maybe_pause<Shape>(p.delay_seed);
    promote();
  }

  /// Issues S of this key tile and P V of the one before, and weighs S while P V runs.
  __device__ __forceinline__ void step(Fp8Softmax& softmax, float (&factors)[2], int tile) {
    const unsigned n = cursor.kv_tiles + 1;
    maybe_pause<Shape>(p.delay_seed);
    wait_for_turn();
    hold(s);
    hold(t);
    hold_weights();
    fence_products();
    issue_scores(n);
    commit_products();
    cursor.wait_for_v(cursor.kv_tiles);
    fence_products();
    issue_values(cursor.kv_tiles);
    commit_products();
    pass_turn();
    wait_for_products<1>();
    hold(s);
    weigh<true>(softmax, factors, tile, n);
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
