#pragma once

#include "gpu/kernels/fa3_wgmma/again.cuh"
#include "gpu/kernels/fa3_wgmma/rings.cuh"
#include "gpu/kernels/fa3_wgmma/softmax.cuh"
#include "gpu/primitives/delay.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/tma.cuh"
#include "gpu/primitives/wgmma.cuh"

namespace attest {

/// A warpgroup that multiplies: 64 query rows of each output tile of its block.
///
///   overlap = no                           overlap = yes
///     S = Q K_0                              S = Q K_0, P = weights(S)
///     each j: P = weights(S)                 each j > 0: issue S = Q K_j
///             issue O += P V_j                           issue O += P V_(j-1)
///             issue S = Q K_(j+1)                        wait for S: weights(S), while P V runs
///             wait for both                              wait for O: rescale it, P = weights
///                                            O += P V_last
template <typename Shape>
struct Fa3Consumer {
  using T = typename Shape::T;
  using Softmax = Fa3Softmax<Shape::Bc>;
  static constexpr int D = Shape::D, Bc = Shape::Bc;
  /// O is put in order in shared memory of its own, or in that of a Q that is done with, while the
  /// next Q is in another.
  static constexpr bool has_output_panels = Shape::choice.o_panels > 0;
  static constexpr bool orders_in_q = !has_output_panels && !Shape::choice.splits;
  static constexpr int ordered_panels = has_output_panels ? Shape::choice.o_panels : Shape::panels;
  static_assert(!orders_in_q || Shape::q_stages > 1);
  /// Four groups have no register left for it.
  static constexpr int most_skipped_ahead = Shape::consumers < 4 ? Shape::v_stages - 1 : 0;
  static constexpr int first_turn = 1;  ///< named barriers, one for each group's turn

  const Fa3Parameters& p;
  const Fa3Rings<Shape>& rings;
  const int group;
  unsigned kv_tiles = 0;  ///< of this block whose V is done with
  unsigned q_tiles = 0;   ///< of this block that came before
  float s[Bc / 2];
  float o[D / 2];
  unsigned weights[Bc / 16][4];

  __device__ __forceinline__ Fa3Consumer(const Fa3Parameters& p_, const Fa3Rings<Shape>& rings_,
                                         int group_)
      : p(p_), rings(rings_), group(group_) {}

  __device__ __forceinline__ void run() {
    if (Shape::choice.ping_pong && group == Shape::consumers - 1) arrive_turn(0);
    bool has_scores = false;  // the first key tile's, in s
    for (;;) {
      Softmax softmax;
      const Fa3Work work = wait_for_work();
      if (work.count == Fa3Work::none_left) break;
      skip(work.skipped, work.count == 0 ? work.skipped - 1 : work.skipped, has_scores);
      if (work.count == 0) {
        __syncwarp();  // all lanes have read the work
        release_last_q();
        store_nothing(work);
        if constexpr (!orders_in_q) release_q();
        ++q_tiles;
        has_scores = false;
        continue;
      }
      if (!has_scores) {
        wait_for_k(kv_tiles);
        hold(s);
        fence_products();
        issue_scores(kv_tiles);
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
  /// Read again wherever it is used: what the compiler would otherwise work out once, before the
  /// loops, would have to wait in local memory.
  static __device__ __forceinline__ unsigned thread() {
#ifdef __CUDACC__
    unsigned x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
#else
    return threadIdx.x;
#endif
  }
  static __device__ __forceinline__ int lane() {
    return static_cast<int>(thread() & 31U);
  }
  static __device__ __forceinline__ int warp() {
    return static_cast<int>(thread() >> 5 & 3U);
  }

  // Ping-pong: a group multiplies only in its turn. Barrier numbers are constants, for ptxas.
  __device__ __forceinline__ void wait_for_turn() const {
    if constexpr (Shape::choice.ping_pong) {
      if (group == 0) sync_named(first_turn, 2 * warpgroup_threads);
      if (group == 1) sync_named(first_turn + 1, 2 * warpgroup_threads);
      if (group == 2) sync_named(first_turn + 2, 2 * warpgroup_threads);
    }
  }
  __device__ __forceinline__ void arrive_turn(int next) const {
    if (next == 0) arrive_named(first_turn, 2 * warpgroup_threads);
    if (next == 1) arrive_named(first_turn + 1, 2 * warpgroup_threads);
    if (next == 2) arrive_named(first_turn + 2, 2 * warpgroup_threads);
  }
  __device__ __forceinline__ void pass_turn() const {
    if constexpr (Shape::choice.ping_pong)
      arrive_turn(group + 1 < Shape::consumers ? group + 1 : 0);
  }

  // Rings.
  static __device__ __forceinline__ int k_stage(unsigned tile) {
    return static_cast<int>(tile % Shape::k_stages);
  }
  static __device__ __forceinline__ int v_stage(unsigned tile) {
    return static_cast<int>(tile % Shape::v_stages);
  }
  __device__ __forceinline__ int q_stage() const {
    return static_cast<int>(q_tiles % Shape::q_stages);
  }
  __device__ __forceinline__ void wait_for_k(unsigned tile) const {
    rings.full_k(k_stage(tile)).wait(tile / Shape::k_stages % 2);
  }
  __device__ __forceinline__ void wait_for_v(unsigned tile) const {
    rings.full_v(v_stage(tile)).wait(tile / Shape::v_stages % 2);
  }
  __device__ __forceinline__ Fa3Work wait_for_work() const {
    rings.full_q(q_stage(), group).wait(q_tiles / Shape::q_stages % 2);
    return rings.work(q_tiles, group);
  }
  /// Every warp of the group must have read it.
  __device__ __forceinline__ void release(Mbarrier empty) const {
    if (lane() == 0) empty.arrive();
  }
  __device__ __forceinline__ void release_q() const {
    release(rings.empty_q(q_stage(), group));
  }
  __device__ __forceinline__ void release_k(unsigned tile) const {
    release(rings.empty_k(k_stage(tile)));
  }
  __device__ __forceinline__ void release_v(unsigned tile) const {
    release(rings.empty_v(v_stage(tile)));
  }

  __device__ __forceinline__ void issue_scores(unsigned tile) {
    const MatrixDescriptor q = k_major_at(rings.q_tile(q_stage(), group));
    const MatrixDescriptor k = k_major_at(rings.k_tile(k_stage(tile)));
#pragma unroll
    for (int i = 0; i < D / 16; ++i) {
      issue_product<T, Major::k, Major::k>(s, q + k_major_step(i, Shape::group_rows),
                                           k + k_major_step(i, Bc), i > 0);
    }
  }
  __device__ __forceinline__ void issue_output(unsigned tile, bool adds) {
    const MatrixDescriptor v = mn_major_at(rings.v_tile(v_stage(tile)), Bc);
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) {
      issue_product<T, Major::mn>(o, weights[i], v + mn_major_step(i), i > 0 || adds);
    }
  }
  __device__ __forceinline__ void hold_weights() {
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) hold(weights[i]);
  }

  /// Of this lane; the other is 8 below.
  __device__ __forceinline__ int row_of(const Fa3Work& work) const {
    return work.row + 16 * warp() + lane() / 4;
  }
  __device__ __forceinline__ bool has_row(int row) const {
    return static_cast<unsigned>(row) < static_cast<unsigned>(p.queries);
  }
  /// x, which all lanes have, as something that ptxas knows all lanes to have: what hangs on it,
  /// the descriptors above all, then stays in uniform registers.
  static __device__ __forceinline__ int uniform(int x) {
    return __shfl_sync(0xffffffffU, x, 0);
  }

  /// Gives the block's next key tiles back unread, or V of them where K is given back, and passes
  /// the turns on that others wait for: one for each tile that is not the work's first. The tiles
  /// must have arrived: an arrival before would count for the tiles that were there.
  __device__ __forceinline__ void skip(int tiles, int turns, bool has_skipped_k) {
#pragma unroll 1
    for (; tiles > 0; --tiles) {
      if (Shape::choice.ping_pong && tiles <= turns) {
        wait_for_turn();
        pass_turn();
      }
      if (most_skipped_ahead == 0 || !has_skipped_k) skip_k(kv_tiles);
      wait_for_v(kv_tiles);
      __syncwarp();
      release_v(kv_tiles);
      ++kv_tiles;
    }
  }
  __device__ __forceinline__ void skip_k(unsigned tile) const {
    wait_for_k(tile);
    __syncwarp();  // all lanes have seen it: a phase is over, and the next may be, before the last
    release_k(tile);
  }

  /// Weights of key tiles [first, first + count), last first, whose first scores are in s, and all
  /// P V but the last.
  __device__ __forceinline__ void weigh_all(Softmax& softmax, int first, int count) {
    int tile = first + count - 1;
    // From `masked` on, some row of the group does not see the whole key tile; from `seen` on, a
    // maximum is looked for before weights are formed: a reference from the few keys that a row
    // sees of a masked tile will hardly do for the next.
    const int masked = uniform(p.past_key(rings.work(q_tiles, group).row) / Bc);
    const int seen = uniform(p.scales_first ? 0 : masked > tile ? tile : masked - 1);
    if constexpr (Shape::choice.overlap) {
      release_k(kv_tiles);
      weigh_seen(softmax, tile, masked);
      pack_weights();
      release_last_q();

#pragma unroll 1
      for (int left = count - 1; left > 0; --left)
        step(softmax, --tile, masked, seen, left + 1 < count);
    } else {
#pragma unroll 1
      for (int left = count - 1; left > 0; --left) {
        serial_step(softmax, tile--, masked, seen, left + 1 < count);
        if (left + 1 == count) release_last_q();
      }
      if (weigh(softmax, tile, masked, seen, kv_tiles)) rescale(softmax.keep);
      if (count == 1) release_last_q();
      release_k(kv_tiles);
      pack_weights();
    }
  }

  /// O of the last key tile; and, where the next Q has memory of its own, the first scores of what
  /// comes next: false if there are none. Products are issued in any case, since ptxas serialises
  /// them under a condition.
  __device__ __forceinline__ bool finish_output(const Softmax& softmax, bool adds) {
    wait_for_v(kv_tiles);
    hold(s);
    hold(o);
    hold_weights();
    fence_products();
    issue_output(kv_tiles, adds);
    commit_products();
    if constexpr (!orders_in_q) release_q();
    ++q_tiles;
    if constexpr (Shape::q_stages == 1) {  // Q arrives while O leaves
      wait_for_products<0>();
      hold(o);
      release_v(kv_tiles);
      ++kv_tiles;
      store(softmax);
      return false;
    }
    const Fa3Work next = wait_for_work();
    // Key tiles that this group leaves out come first. More than there is room for would not come
    // before the V that is being read is given back.
    const bool has_next = next.count > 0 && next.skipped <= most_skipped_ahead;
    const int ahead = most_skipped_ahead == 0 ? 0 : next.skipped;
    if (has_next) {
#pragma unroll 1
      for (int left = ahead; left > 0; --left) skip_k(kv_tiles + left);
      wait_for_k(kv_tiles + 1 + ahead);
    }
    fence_products();
    issue_scores(kv_tiles + 1 + ahead);
    commit_products();
    wait_for_products<1>();
    hold(o);
    release_v(kv_tiles);
    ++kv_tiles;
    store(softmax);
    wait_for_products<0>();
    hold(s);
    return has_next;
  }

  /// Scores of keys that a row does not see become -inf.
  __device__ __forceinline__ void mask(int tile) {
    const int row = row_of(rings.work(q_tiles, group));
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int past = p.past_key(min(row + 8 * h, p.queries - 1));
      const int left = past - tile * Bc - 2 * (lane() % 4);
#pragma unroll
      for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (8 * j + e >= left) s[4 * j + 2 * h + e] = -INFINITY;
        }
      }
    }
  }
  __device__ __forceinline__ void scale_scores() {
    if (!p.scales_first) return;
#pragma unroll
    for (float& x : s) x *= p.factor;
  }

  /// Scores of key tile `tile`, the block's `n`th, become weights. True where O must be rescaled by
  /// softmax.keep. The tile's K must not have been released.
  __device__ __forceinline__ bool weigh(Softmax& softmax, int tile, int masked, int seen,
                                        unsigned n) {
    const bool is_unseen = tile < seen;
    if (is_unseen) {
      if (softmax.weigh_unseen(s, p.c)) return false;
      wait_for_products<0>();  // frees the registers of P
      hold(o);
      form_scores_again<T, D, Bc, Shape::group_rows>(
          s, rings.q_tile(q_stage(), group) + 16 * panel_row_bytes * warp(),
          rings.k_tile(k_stage(n)));
    } else {
      scale_scores();
      if (tile >= masked) mask(tile);
    }
    return softmax.weigh(s, p.c, is_unseen);
  }
  /// The same with a maximum that is looked for first.
  __device__ __forceinline__ bool weigh_seen(Softmax& softmax, int tile, int masked) {
    scale_scores();
    if (tile >= masked) mask(tile);
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
  }
  __device__ __forceinline__ void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < D / 2; ++i) o[i] *= keep[i / 2 % 2];
  }

  /// Issues S of this key tile and P V of the one before, and weighs S while P V runs.
  __device__ __forceinline__ void step(Softmax& softmax, int tile, int masked, int seen,
                                       bool adds) {
    wait_for_k(kv_tiles + 1);
    maybe_pause<Shape>(p.delay_seed);
    wait_for_turn();
    hold(s);
    hold(o);
    hold_weights();
    fence_products();
    issue_scores(kv_tiles + 1);
    commit_products();
    wait_for_v(kv_tiles);
    fence_products();
    issue_output(kv_tiles, adds);
    commit_products();
    pass_turn();
    wait_for_products<1>();
    hold(s);
    const bool rescales = weigh(softmax, tile, masked, seen, kv_tiles + 1);
    release_k(kv_tiles + 1);
    hold(s);  // weights are formed before the wait, not where they are used
    wait_for_products<0>();
    hold(o);
    hold_weights();
    release_v(kv_tiles);
    ++kv_tiles;
    maybe_pause<Shape>(p.delay_seed);
    if (rescales) rescale(softmax.keep);
    pack_weights();
  }

  /// Weighs S, then issues P V of this key tile and S of the next.
  __device__ __forceinline__ void serial_step(Softmax& softmax, int tile, int masked, int seen,
                                              bool adds) {
    if (weigh(softmax, tile, masked, seen, kv_tiles)) rescale(softmax.keep);
    pack_weights();
    release_k(kv_tiles);
    wait_for_v(kv_tiles);
    wait_for_k(kv_tiles + 1);
    maybe_pause<Shape>(p.delay_seed);
    wait_for_turn();
    hold(s);
    hold(o);
    hold_weights();
    fence_products();
    issue_output(kv_tiles, adds);
    issue_scores(kv_tiles + 1);
    commit_products();
    pass_turn();
    wait_for_products<0>();
    hold(s);
    hold(o);
    release_v(kv_tiles);
    ++kv_tiles;
  }

  /// Writes O and LSE of the tile that came last.
  __device__ __forceinline__ void store(const Softmax& softmax) {
    const Fa3Work work =
        rings.work(q_tiles - 1, group);  // again, instead of keeping it in registers
    const int row = row_of(work), t = lane() % 4;
    const float sum[2] = {Softmax::over_row(softmax.l[0]), Softmax::over_row(softmax.l[1])};
    if constexpr (Shape::choice.splits) {
      store_partial(work, softmax, sum, row);
      return;
    }
    const float factor[2] = {1.0F / divisor_of(sum[0]), 1.0F / divisor_of(sum[1])};
    store_output(work, factor);
    if (t == 0) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (row + 8 * h < p.queries) lse_of(work, row + 8 * h) = log_sum_exp2(softmax.r[h], sum[h]);
      }
    }
  }
  __device__ __forceinline__ unsigned output_pair(int i, int h, float factor) const {
    return packed<T>(o[4 * i + 2 * h] * factor, o[4 * i + 2 * h + 1] * factor);
  }

  /// Each warp puts its own 16 rows in order in shared memory, some panels at a time; from there
  /// whole lines are written.
  __device__ __forceinline__ void store_output(const Fa3Work& work, const float (&factor)[2]) {
    const SharedAddress ordered =
        has_output_panels ? rings.output(group) : rings.q_tile(last_q_stage(), group);
#pragma unroll
    for (int first = 0; first < Shape::panels; first += ordered_panels) {
      __syncwarp();  // everybody has read what was there
#pragma unroll
      for (int i = 8 * first; i < min(8 * (first + ordered_panels), D / 8); i += 2) {
        const unsigned pairs[4] = {output_pair(i, 0, factor[0]), output_pair(i, 1, factor[1]),
                                   output_pair(i + 1, 0, factor[0]),
                                   output_pair(i + 1, 1, factor[1])};
        store_matrices(ordered + ((i / 8 - first) * Shape::q_panel_bytes +
                                  swizzled_chunk(16 * warp() + lane() % 16, i % 8 + lane() / 16)),
                       pairs);
      }
      if (orders_in_q && p.stores_boxes) {
        store_boxes(work, ordered);
      } else {
        store_lines(work, ordered, first);
      }
    }
  }
  /// By the copy engine, which reads them while this warp goes on.
  __device__ __forceinline__ void store_boxes(const Fa3Work& work, SharedAddress ordered) const {
    fence_async_shared();
    __syncwarp();
    if (lane() != 0) return;
    const int row = 16 * warp();
#pragma unroll
    for (int panel = 0; panel < Shape::panels; ++panel) {
      store_box(p.o, {panel * panel_columns, work.row + row, work.head, work.entry},
                ordered + (panel * Shape::q_panel_bytes + row * panel_row_bytes));
    }
    commit_stores();
  }
  /// By the warp itself, panels `first` and so on: memory that is wanted back at once must not wait
  /// for the copy engine, which first loads the key tiles that it was asked for before.
  __device__ __forceinline__ void store_lines(const Fa3Work& work, SharedAddress ordered,
                                              int first) const {
    __syncwarp();
    // A row's 128 bytes of a panel are for 8 lanes.
    const int row = 16 * warp() + lane() / 8, column = first * panel_columns + 8 * (lane() % 8);
#pragma unroll
    for (int panel = 0; panel < ordered_panels; ++panel) {
#pragma unroll
      for (int i = 0; i < 16; i += 4) {
        const uint4 chunk = load_16_bytes(
            ordered + (panel * Shape::q_panel_bytes + swizzled_chunk(row + i, lane() % 8)));
        const int query = work.row + row + i;
        if (query < p.queries && column + panel * panel_columns < p.columns)
          store_columns(output_row(work, query), column + panel * panel_columns, chunk);
      }
    }
  }
  /// Gives back the memory of the Q that came last, once the copy engine has read O from it: once
  /// for each Q, when the next one is being worked on.
  __device__ __forceinline__ void release_last_q() const {
    if (!orders_in_q || q_tiles == 0) return;
    __syncwarp();
    if (lane() == 0) {
      wait_until_stores_have_read();
      rings.empty_q(last_q_stage(), group).arrive();
    }
    __syncwarp();
  }
  __device__ __forceinline__ int last_q_stage() const {
    return static_cast<int>((q_tiles - 1) % Shape::q_stages);
  }
  /// 8 columns from `column` on, as far as there are.
  __device__ __forceinline__ void store_columns(T* row, int column, const uint4& chunk) const {
    if (column + 8 <= p.columns) {
      *reinterpret_cast<uint4*>(row + column) = chunk;
      return;
    }
    const std::uint64_t low = chunk.x | std::uint64_t{chunk.y} << 32;
    const std::uint64_t high = chunk.z | std::uint64_t{chunk.w} << 32;
    auto* const bits = reinterpret_cast<unsigned short*>(row);
#pragma unroll 1
    for (int i = 0; column + i < p.columns; ++i) {
      bits[column + i] = static_cast<unsigned short>((i < 4 ? low : high) >> 16 * (i % 4));
    }
  }

  __device__ __forceinline__ T* output_row(const Fa3Work& work, int row) const {
    return static_cast<T*>(p.output) + p.o_strides.offset(work.entry, work.head, row);
  }
  __device__ __forceinline__ std::int64_t plane_of(const Fa3Work& work) const {
    return static_cast<std::int64_t>(work.entry) * p.heads + work.head;
  }
  __device__ __forceinline__ float& lse_of(const Fa3Work& work, int row) const {
    return p.lse[plane_of(work) * p.queries + row];
  }

  /// For rows that see no key, of this split at least.
  __device__ __forceinline__ void store_nothing(const Fa3Work& work) const {
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {
      const int row = row_of(work) + 8 * h;
      if (!has_row(row)) continue;
      const int t = lane() % 4;
      if constexpr (Shape::choice.splits) {
        float* const to = partial_row(work, row);
        for (int column = t; column < p.columns; column += 4) to[column] = 0.0F;
        if (t == 0) {
          to[p.columns] = -FLT_MAX;
          to[p.columns + 1] = 0.0F;
        }
      } else {
        T* const to = output_row(work, row);
        for (int column = t; column < p.columns; column += 4) to[column] = T(0.0F);
        if (t == 0) lse_of(work, row) = -INFINITY;
      }
    }
  }

  __device__ __forceinline__ float* partial_row(const Fa3Work& work, int row) const {
    const std::int64_t rows = p.grid.heads * p.queries;
    const std::int64_t n = plane_of(work) * p.queries + row;
    return p.partial + (work.part * rows + n) * (p.columns + 2);
  }
  __device__ __forceinline__ void store_partial(const Fa3Work& work, const Softmax& softmax,
                                                const float (&sum)[2], int row) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row + 8 * h >= p.queries) continue;
      float* const to = partial_row(work, row + 8 * h);
#pragma unroll
      for (int i = 0; i < D / 8; ++i) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = 8 * i + 2 * (lane() % 4) + e;
          if (column < p.columns) to[column] = o[4 * i + 2 * h + e];
        }
      }
      if (lane() % 4 == 0) {
        to[p.columns] = softmax.r[h];
        to[p.columns + 1] = sum[h];
      }
    }
  }
};

}  // namespace attest
