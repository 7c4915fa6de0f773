#pragma once

// What a warpgroup that multiplies does: 64 query rows of each output tile of its block.
//
// Idea
//   S = Q K^T and O += P V are wgmma, issued and waited for later. What comes between is done in
//   registers: S is masked, becomes weights P (softmax.cuh) and, rounded to 16 bits, the left
//   operand of P V. Two schedules, which differ in what the tensor cores do meanwhile:
//
//   overlap = no                           overlap = yes
//     S = Q K_0                              S = Q K_0, P = weights(S)
//     each j: P = weights(S)                 each j > 0: issue S = Q K_j
//             issue O += P V_j                           issue O += P V_(j-1)
//             issue S = Q K_(j+1)                        wait for S: weights(S), while P V runs
//             wait for both                              wait for O: rescale it, P = weights
//                                            O += P V_last
// Resident
//   shared     Q [q_stages, 64, D] of each warpgroup, K [k_stages, Bc, D], V [v_stages, Bc, DV];
//              the loading thread fills them (loader.cuh). O on its way out, in panels of its own
//              or where a finished Q lies (output.cuh)
//   registers  S [64, Bc], O [64, DV] and P of the warpgroup; r, l of the rows
// Legend
//   Br, Bc query_tile, key_tile; D head_dim and DV value_dim rounded up to
//   a size that is compiled; P weights
//   2^(c s - r); r a row's reference; l sum of P before it is rounded; tiles are counted from the
//   block's first, and K_0 is the last key tile that the rows see: key tiles come last first.
// Masking
//   Key tiles that no row of the warpgroup sees are given back unread (skip). Only tiles that hold
//   a key some row does not see compare keys with rows; there S becomes -inf. What a row sees
//   of a tile within its window and of padded keys is 64 bits (visible_bits.hpp).
// Waits
//   full       a tile is read after its bytes have arrived (ring_cursor.cuh)
//   empty      a tile is released when all warps have read it (ring_cursor.cuh)
//   turns      ping_pong: a named barrier for each warpgroup, which issues products in its turn
//   products   registers of a product are touched after wait_for_products(); hold() keeps the
//              compiler from moving uses across it
// Uniform control flow
//   What all lanes of a warp have in common must be known to ptxas as such: ring positions and
//   descriptors then stay in uniform registers. Products are issued without a condition around
//   them.
// Limits
//   fp16, bf16; head_dim up to 256. Arithmetic: hopper().

#include "core/attention/dropout.hpp"
#include "gpu/kernels/fa3_wgmma/output.cuh"
#include "gpu/kernels/fa3_wgmma/ring_cursor.cuh"
#include "gpu/kernels/fa3_wgmma/softmax.cuh"
#include "gpu/primitives/delay.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/softcap.cuh"
#include "gpu/primitives/visible_bits.hpp"
#include "gpu/primitives/wgmma.cuh"

namespace attest {

/// One warpgroup that multiplies; consumer.cuh says in which order it does what.
template <typename Shape>
struct Fa3Consumer : Fa3Thread {
  using T = typename Shape::T;
  using Work = typename Shape::Work;
  using Softmax = Fa3Softmax<Shape::Bc>;
  using Output = Fa3Output<Shape>;
  static constexpr int D = Shape::D, DV = Shape::DV, Bc = Shape::Bc;
  /// Key tiles of the next output tile that may be skipped while V of this one is being read. Four
  /// groups have no register left for it.
  static constexpr int most_skipped_ahead = Shape::consumers < 4 ? Shape::v_stages - 1 : 0;

  const typename Shape::Parameters& p;
  Fa3RingCursor<Shape> cursor;
  int whole_from;       ///< masked: rows of the group see the first key of key tiles from here on
  std::uint64_t shown;  ///< masked: bits of the keys of a key tile that padding leaves
  float slope;          ///< masked: of the work's head, in units of the products
  Fa3KeyUnits units;    ///< lists: of the key tile
  unsigned kept;  ///< modified: bits of the weights that stay, 2 j + e of key 8 j + e of row 0,
                  ///< from 16 on those of row 1
  float bias[Shape::choice.modified ? Bc / 2 : 1];  ///< modified: as the scores it is added to
  float s[Bc / 2];
  float o[DV / 2];
  unsigned weights[Bc / 16][4];

  __device__ __forceinline__ Fa3Consumer(const typename Shape::Parameters& p_,
                                         const Fa3Rings<Shape>& rings, int group)
      : p(p_), cursor(rings, group) {}

  __device__ __forceinline__ void run() {
    if (Shape::choice.ping_pong && cursor.group == Shape::consumers - 1) arrive_turn(0);
    bool has_scores = false;  // the first key tile's, in s
    for (;;) {
      Softmax softmax;
      const Work work = cursor.wait_for_work();
      if (work.count == Fa3Work::none_left) break;
      skip(work.skipped, work.count == 0 ? work.skipped - 1 : work.skipped, has_scores);
      if (work.count == 0) {
        __syncwarp();  // all lanes have read the work
        output().release_last_q();
        output().store_nothing(work);
        if constexpr (!Output::orders_in_q) cursor.release_q();
        ++cursor.q_tiles;
        has_scores = false;
        continue;
      }
      if (!has_scores) {
        cursor.wait_for_k(cursor.kv_tiles);
        hold(s);
        fence_products();
        issue_scores(cursor.kv_tiles);
        commit_products();
        wait_for_products<0>();
        hold(s);
      }
      weigh_all(softmax, work.first, work.count);
      has_scores = finish_output(softmax, work.count > 1);
    }
    if (lane() == 0) wait_until_stores_have_read();  // shared memory ends with the block
  }

 private:
  __device__ __forceinline__ Output output() const { return {p, cursor}; }

  // Ping-pong: a group multiplies only in its turn. Barrier numbers are constants, for ptxas.
  __device__ __forceinline__ void wait_for_turn() const {
    if constexpr (Shape::choice.ping_pong) {
      if (cursor.group == 0) sync_named(Shape::first_turn, 2 * warpgroup_threads);
      if (cursor.group == 1) sync_named(Shape::first_turn + 1, 2 * warpgroup_threads);
      if (cursor.group == 2) sync_named(Shape::first_turn + 2, 2 * warpgroup_threads);
    }
  }
  __device__ __forceinline__ void arrive_turn(int next) const {
    if (next == 0) arrive_named(Shape::first_turn, 2 * warpgroup_threads);
    if (next == 1) arrive_named(Shape::first_turn + 1, 2 * warpgroup_threads);
    if (next == 2) arrive_named(Shape::first_turn + 2, 2 * warpgroup_threads);
  }
  __device__ __forceinline__ void pass_turn() const {
    if constexpr (Shape::choice.ping_pong)
      arrive_turn(cursor.group + 1 < Shape::consumers ? cursor.group + 1 : 0);
  }

  __device__ __forceinline__ void issue_scores(unsigned tile) {
    const MatrixDescriptor q = k_major_at(cursor.q_tile());
    const MatrixDescriptor k = k_major_at(cursor.k_tile(tile));
#pragma unroll
    for (int i = 0; i < D / 16; ++i) {
      issue_product<T, Major::k, Major::k>(s, q + k_major_step(i, Shape::group_rows),
                                           k + k_major_step(i, Bc), i > 0);
    }
  }
  __device__ __forceinline__ void issue_output(unsigned tile, bool adds) {
    const MatrixDescriptor v = mn_major_at(cursor.v_tile(tile), Bc);
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) {
      issue_product<T, Major::mn>(o, weights[i], v + mn_major_step(i), i > 0 || adds);
    }
  }
  __device__ __forceinline__ void hold_weights() {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) hold(weights[i]);
  }

  /// Tells ptxas that all lanes have the same x. What follows from x, the descriptors above all,
  /// then stays in uniform registers.
  static __device__ __forceinline__ int uniform(int x) {
    return __shfl_sync(0xffffffffU, x, 0);
  }

  /// Gives the block's next key tiles back unread, or their V where K was given back before. Passes
  /// on the turn that others wait for, once for each tile that is not the work's first. The tiles
  /// must have arrived, since an earlier arrival would count for the tiles that were there.
  __device__ __forceinline__ void skip(int tiles, int turns, bool has_skipped_k) {
#pragma unroll 1
    for (; tiles > 0; --tiles) {
      if (Shape::choice.ping_pong && tiles <= turns) {
        wait_for_turn();
        pass_turn();
      }
      if (most_skipped_ahead == 0 || !has_skipped_k) cursor.skip_k(cursor.kv_tiles);
      cursor.wait_for_v(cursor.kv_tiles);
      __syncwarp();
      cursor.finish_key_tile();
    }
  }

  /// Weighs key tiles [first, first + count), last first, and adds P V of all but the tile weighed
  /// last. Scores of the first one are in s.
  __device__ __forceinline__ void weigh_all(Softmax& softmax, int first, int count) {
    int tile = first + count - 1;
    // From `masked` on, some row of the group does not see the whole key tile; from `seen` on, a
    // maximum is looked for before weights are formed: a reference from the few keys that a row
    // sees of a masked tile will hardly do for the next.
    const int masked =
        uniform(past_key_of(cursor.work().row) / (Shape::choice.lists ? fa3_unit_keys : Bc));
    // Those of a list, whose units count, come in no order: all whole ones but the first.
    int after = Shape::choice.lists ? masked : masked > tile ? tile : masked - 1;
    if constexpr (Shape::choice.masked) {
      if (p.slopes != nullptr) {
        slope = p.slopes[cursor.work().head] * p.slope_unit;
        after = min(after, rising_from());
      }
    }
    const int seen = uniform(p.searches_first ? 0 : after);
    if constexpr (Shape::choice.masked) {
      const int last_row = min(cursor.work().row + Shape::group_rows, p.queries) - 1;
      whole_from = uniform((p.range_of(cursor.work().entry, last_row).first + Bc - 1) / Bc);
    }
    if constexpr (Shape::choice.overlap) {
      cursor.release_k(cursor.kv_tiles);
      read_padding(tile);
      read_modifications(tile);
      look_up(tile);
      weigh_seen(softmax, tile, masked);
      pack_weights();
      output().release_last_q();

#pragma unroll 1
      for (int left = count - 1; left > 0; --left)
        step(softmax, --tile, masked, seen, left + 1 < count);
    } else {
#pragma unroll 1
      for (int left = count - 1; left > 0; --left) {
        serial_step(softmax, tile--, masked, seen, left + 1 < count);
        if (left + 1 == count) output().release_last_q();
      }
      if (weigh(softmax, tile, masked, seen, cursor.kv_tiles)) rescale(softmax.keep);
      if (count == 1) output().release_last_q();
      cursor.release_k(cursor.kv_tiles);
      pack_weights();
    }
  }

  /// Adds the last P V to O and stores O. Where the next Q has memory of its own, its first scores
  /// are formed meanwhile. True where s then holds them. Products are issued in any case, since
  /// ptxas serialises them under a condition.
  __device__ __forceinline__ bool finish_output(const Softmax& softmax, bool adds) {
    cursor.wait_for_v(cursor.kv_tiles);
    hold(s);
    hold(o);
    hold_weights();
    fence_products();
    issue_output(cursor.kv_tiles, adds);
    commit_products();
    if constexpr (!Output::orders_in_q) cursor.release_q();
    ++cursor.q_tiles;
    if constexpr (Shape::q_stages == 1) {  // Q arrives while O leaves
      wait_for_products<0>();
      hold(o);
      cursor.finish_key_tile();
      output().store(o, softmax);
      return false;
    }
    const Work next = cursor.wait_for_work();
    // Key tiles that this group leaves out come first. More than there is room for would not come
    // before the V that is being read is given back.
    const bool has_next = next.count > 0 && next.skipped <= most_skipped_ahead;
    const int ahead = most_skipped_ahead == 0 ? 0 : next.skipped;
    if (has_next) {
#pragma unroll 1
      for (int left = ahead; left > 0; --left) cursor.skip_k(cursor.kv_tiles + left);
      cursor.wait_for_k(cursor.kv_tiles + 1 + ahead);
    }
    fence_products();
    issue_scores(cursor.kv_tiles + 1 + ahead);
    commit_products();
    wait_for_products<1>();
    hold(o);
    cursor.finish_key_tile();
    output().store(o, softmax);
    wait_for_products<0>();
    hold(s);
    return has_next;
  }

  /// One past the last key that a row of the work sees.
  __device__ __forceinline__ int past_key_of(int row) const {
    if constexpr (Shape::choice.masked) return p.range_of(cursor.work().entry, row).past;
    return bounds_of(p, cursor.work()).past_key(row);
  }
  /// Reads which units the pair at a place of the list has. Products that were issued run
  /// meanwhile.
  __device__ __forceinline__ void look_up(int place) {
    if constexpr (Shape::choice.lists) units = key_tile_of(cursor.work(), place);
  }
  /// The key tile at a place of the work, which was looked up.
  __device__ __forceinline__ auto key_tile(int place) const {
    if constexpr (Shape::choice.lists) {
      return Fa3KeyUnits{{uniform(units.unit[0]), uniform(units.unit[1])}};
    } else {
      return place;
    }
  }
  /// The unit of a key tile that comes last in memory.
  static __device__ __forceinline__ int last_of(const Fa3KeyUnits& tile) {
    return max(tile.unit[0], tile.unit[1]);
  }
  /// Asks which keys of the key tile padding leaves. Products that were issued run meanwhile.
  __device__ __forceinline__ void read_padding(int tile) {
    if constexpr (Shape::choice.masked) {
      shown = ~std::uint64_t{0};
      if (p.key_mask == nullptr) return;
      const std::uint8_t* const keys =
          p.key_mask + static_cast<std::int64_t>(cursor.work().entry) * p.keys;
      unsigned half[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int key = tile * Bc + 32 * i + lane();
        half[i] = __ballot_sync(0xffffffffU, key < p.keys && keys[key] != 0);
      }
      shown = half[0] | std::uint64_t{half[1]} << 32;
    }
  }
  /// Asks for the biases of a key tile, and draws which weights stay. Products run meanwhile, too.
  __device__ __forceinline__ void read_modifications(int tile) {
    if constexpr (Shape::choice.modified) {
      if (p.bias != nullptr) read_bias(tile);
      if (p.drops) draw(tile);
    }
  }
  __device__ __forceinline__ void read_bias(int tile) {
    const Work& work = cursor.work();
    const int first_key = tile * Bc + 2 * (lane() % 4), left = p.keys - first_key;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int query = max(0, min(Output::row_of(work) + 8 * h, p.queries - 1));
      const float* const from =
          p.bias + p.bias_strides.offset(work.entry, work.head, query) + first_key;
#pragma unroll
      for (int j = 0; j < Bc / 8; ++j) {
        float2 pair{0.0F, 0.0F};
        if (p.bias_in_pairs) {
          if (8 * j + 1 < left) pair = *reinterpret_cast<const float2*>(from + 8 * j);
        } else {
          if (8 * j < left) pair.x = from[8 * j];
          if (8 * j + 1 < left) pair.y = from[8 * j + 1];
        }
        element(bias, j, h, 0) = pair.x;
        element(bias, j, h, 1) = pair.y;
      }
    }
  }
  /// A draw is for four keys of a row, which two neighbouring lanes have: each draws for both, the
  /// one for row 0 and the other for row 1.
  __device__ __forceinline__ void draw(int tile) {
    const Work& work = cursor.work();
    const int h = lane() % 2;
    const auto query = static_cast<unsigned>(Output::row_of(work) + 8 * h);
    const auto plane = static_cast<unsigned>(work.entry * p.heads + work.head);
    const int first_group = (tile * Bc + 2 * (lane() % 4)) / 4;
    unsigned bits[2] = {};  // of the lanes with the first and the last two keys
#pragma unroll 2
    for (int j = 0; j < Bc / 8; ++j) {
      const PhiloxWords words =
          philox4x32({{static_cast<unsigned>(first_group + 2 * j), query, plane, p.dropout_offset}},
                     p.dropout_seed);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        bits[i / 2] |= (words.word[i] > p.last_fallen ? 1U : 0U) << (2 * j + i % 2);
      }
    }
    const unsigned own = h == 0 ? bits[0] : bits[1], others = h == 0 ? bits[1] : bits[0];
    const unsigned drawn = __shfl_xor_sync(0xffffffffU, others, 1);
    kept = h == 0 ? own | drawn << 16 : drawn | own << 16;
  }
  /// Adds the bias to scores.
  __device__ __forceinline__ void add_bias() {
    if constexpr (Shape::choice.modified) {
      if (p.bias == nullptr) return;
#pragma unroll
      for (int i = 0; i < Bc / 2; ++i) {
        // It hides a key whatever its score is, one that overflowed, say.
        s[i] = bias[i] == -INFINITY ? -INFINITY : fmaf(bias[i], p.slope_unit, s[i]);
      }
    }
  }
  /// True if some row of the group does not see all keys of the key tile.
  __device__ __forceinline__ bool is_cut(int tile, int masked) const {
    if constexpr (Shape::choice.masked) {
      return tile >= masked || tile < whole_from || shown != ~std::uint64_t{0};
    } else {
      return tile >= masked;
    }
  }
  __device__ __forceinline__ bool is_cut(const Fa3KeyUnits& tile, int masked) const {
    return last_of(tile) >= masked;
  }
  /// Scores of keys of key tile `tile` that a row does not see become -inf.
  __device__ __forceinline__ void mask(int tile) {
    const int row = Output::row_of(cursor.work());
    const auto& bounds = bounds_of(p, cursor.work());
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int query = min(row + 8 * h, bounds.queries - 1);
      if constexpr (Shape::choice.masked) {
        const Fa3RowRange range = p.range_of(cursor.work().entry, query);
        const int first_key = tile * Bc;
        const std::uint64_t visible =
            shown & bits_between(range.first - first_key, range.past - first_key);
        show(h, visible >> 2 * (lane() % 4));
      } else {
        const int past = bounds.past_key(query);
        const int left = past - tile * Bc - 2 * (lane() % 4);
        hide_scores(s, h, left);
      }
    }
  }
  __device__ __forceinline__ void mask(const Fa3KeyUnits& tile) {
    const int row = Output::row_of(cursor.work());
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int past = p.past_key(min(row + 8 * h, p.queries - 1));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int left = past - tile.unit[i] * fa3_unit_keys - 2 * (lane() % 4);
#pragma unroll
        for (int j = 0; j < Bc / 16; ++j) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            if (8 * j + e >= left) element(s, Bc / 16 * i + j, h, e) = -INFINITY;
          }
        }
      }
    }
  }
  /// Scores of row h become -inf where the bit of their key, counted from the lane's first, is 0.
  __device__ __forceinline__ void show(int h, std::uint64_t visible) {
#pragma unroll
    for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if ((visible >> (8 * j + e) & 1U) == 0) element(s, j, h, e) = -INFINITY;
      }
    }
  }
  /// Key tiles from this one on are searched because of ALiBi. Behind the diagonal it lets scores
  /// rise from a tile to the next, which comes before it in memory; if they rise fast, a reference
  /// will hardly do for the next. Before the diagonal that holds for slopes below 0.
  __device__ __forceinline__ int rising_from() const {
    if (!(fabsf(slope) * (Bc * p.c) > 0.5F * fa3_reference_lag)) return beyond_all_keys;
    return slope < 0.0F ? 0 : (p.diagonal + cursor.work().row) / Bc;
  }
  /// Adds to scores of key tile `tile` what they are modified by.
  __device__ __forceinline__ void add_terms([[maybe_unused]] auto tile) {
    add_slopes(tile);
    add_bias();
  }
  /// Adds ALiBi's terms to scores of key tile `tile`.
  __device__ __forceinline__ void add_slopes([[maybe_unused]] auto tile) {
    if constexpr (Shape::choice.masked) {
      if (p.slopes == nullptr) return;
      // From the diagonal of the group's first row to the tile's first key.
      const int distance = uniform(tile * Bc - p.diagonal - cursor.work().row);
      if (distance > -Bc && distance < Shape::group_rows - 1) {
        lower_by_distance(-slope, distance, [](float x) { return fabsf(x); });
      } else {  // the diagonals of all rows lie on one side
        lower_by_distance(distance < 0 ? slope : -slope, distance, [](float x) { return x; });
      }
    }
  }
  /// Adds `per_key` times size(distance) to each score. The two rows of a lane are 8 keys apart, so
  /// that they have all but two distances in common.
  template <typename Size>
  __device__ __forceinline__ void lower_by_distance(float per_key, int distance, const Size& size) {
    const int row = 16 * warp() + lane() / 4;
    const auto first = static_cast<float>(distance - row + 2 * (lane() % 4));
#pragma unroll
    for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = element(s, j, h, e);
          x = fmaf(per_key, size(first + static_cast<float>(8 * (j - h) + e)), x);
        }
      }
    }
  }
  __device__ __forceinline__ void scale_scores() {
    if constexpr (Shape::choice.softcap) {
#pragma unroll
      for (float& x : s) x = softcapped(x, p.per_softcap, p.softcap);
    } else {
      if (!p.scales_first) return;
    }
#pragma unroll
    for (float& x : s) x *= p.factor;
  }

  /// Scores of the key tile at a place, the block's `n`th, become weights. True where O must be
  /// rescaled by softmax.keep. K of the tile must not have been released.
  __device__ __forceinline__ bool weigh(Softmax& softmax, int place, int masked, int seen,
                                        unsigned n) {
    // A tanh costs so much more than the search that scores are not tried unseen.
    if constexpr (Shape::choice.softcap) return weigh_seen(softmax, place, masked);
    const auto tile = key_tile(place);
    bool is_unseen = false;
    if constexpr (Shape::choice.lists) {
      is_unseen = last_of(tile) < seen;
    } else {
      is_unseen = tile < seen;
    }
    // Where a row has no reference it would fail, and the scores be lost.
    if (is_unseen && !(Shape::choice.masked && softmax.is_special)) {
      if constexpr (Shape::choice.masked) {
        add_terms(tile);
        if (is_cut(tile, masked)) mask(tile);
      }
      if (softmax.weigh_unseen(s, p.c)) return false;
      wait_for_products<0>();  // frees the registers of P
      hold(o);
      form_scores_again<T, D, Bc, Shape::group_rows>(
          s, cursor.q_tile() + 16 * panel_row_bytes * warp(), cursor.k_tile(n));
      if constexpr (Shape::choice.masked) {
        add_terms(tile);
        if (is_cut(tile, masked)) mask(tile);
      }
    } else {
      scale_scores();
      add_terms(tile);
      if (is_cut(tile, masked)) mask(tile);
    }
    return softmax.weigh(s, p.c, is_unseen);
  }
  /// Scores of the key tile at a place become weights after their maximum was looked for. True
  /// where O must be rescaled.
  __device__ __forceinline__ bool weigh_seen(Softmax& softmax, int place, int masked) {
    const auto tile = key_tile(place);
    scale_scores();
    add_terms(tile);
    if (is_cut(tile, masked)) mask(tile);
    return softmax.weigh(s, p.c, false);
  }

  __device__ __forceinline__ void pack_weights() {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        weights[i][part] = packed<T>(s[8 * i + 2 * part], s[8 * i + 2 * part + 1]);
      }
    }
    if constexpr (Shape::choice.modified) {
      if (p.drops) drop();
    }
  }
  /// Clears weights that fall, which the rows' sums have added.
  __device__ __forceinline__ void drop() {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const unsigned two = kept >> (16 * (part % 2) + 2 * (2 * i + part / 2));
        weights[i][part] &= ((two & 1U) != 0 ? 0xffffU : 0U) | ((two & 2U) != 0 ? 0xffff0000U : 0U);
      }
    }
  }
  __device__ __forceinline__ void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < DV / 2; ++i) o[i] *= keep[i / 2 % 2];
  }

  /// Issues S of this key tile and P V of the one before, and weighs S while P V runs.
  __device__ __forceinline__ void step(Softmax& softmax, int tile, int masked, int seen,
                                       bool adds) {
    cursor.wait_for_k(cursor.kv_tiles + 1);
    maybe_pause<Shape>(p.delay_seed);
    wait_for_turn();
    hold(s);
    hold(o);
    hold_weights();
    fence_products();
    issue_scores(cursor.kv_tiles + 1);
    commit_products();
    cursor.wait_for_v(cursor.kv_tiles);
    fence_products();
    issue_output(cursor.kv_tiles, adds);
    commit_products();
    pass_turn();
    read_padding(tile);
    read_modifications(tile);
    look_up(tile);
    wait_for_products<1>();
    hold(s);
    const bool rescales = weigh(softmax, tile, masked, seen, cursor.kv_tiles + 1);
    cursor.release_k(cursor.kv_tiles + 1);
    hold(s);  // weights are formed before the wait, not where they are used
    wait_for_products<0>();
    hold(o);
    hold_weights();
    cursor.finish_key_tile();
    maybe_pause<Shape>(p.delay_seed);
    if (rescales) rescale(softmax.keep);
    pack_weights();
  }

  /// Weighs S, then issues P V of this key tile and S of the next.
  __device__ __forceinline__ void serial_step(Softmax& softmax, int tile, int masked, int seen,
                                              bool adds) {
    if (weigh(softmax, tile, masked, seen, cursor.kv_tiles)) rescale(softmax.keep);
    pack_weights();
    cursor.release_k(cursor.kv_tiles);
    cursor.wait_for_v(cursor.kv_tiles);
    cursor.wait_for_k(cursor.kv_tiles + 1);
    maybe_pause<Shape>(p.delay_seed);
    wait_for_turn();
    hold(s);
    hold(o);
    hold_weights();
    fence_products();
    issue_output(cursor.kv_tiles, adds);
    issue_scores(cursor.kv_tiles + 1);
    commit_products();
    pass_turn();
    wait_for_products<0>();
    hold(s);
    hold(o);
    cursor.finish_key_tile();
  }
};

}  // namespace attest
