#pragma once

#include <type_traits>

#include "gpu/kernels/bwd_wgmma/rings.cuh"
#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

/// One of the two threads that ask the copy engine for tiles: the first for K and Q, and LSE of its
/// rows, the other for V and dO, and delta. For each key tile rows come head by head, their tiles
/// in ascending order. Both have few registers: what is known of a key tile stays in shared memory.
template <typename Shape, bool of_gradient>
struct BwdStream {
  const BwdParameters& p;
  const typename Shape::Rings& rings;
  unsigned works = 0, steps = 0;  ///< so far

  __device__ __forceinline__ BwdWork& work() const { return rings.work(works); }

  /// Loads what belongs to the current key tile, and goes on to the next.
  __device__ __forceinline__ void load() {
    load_keys();
#pragma unroll 1
    for (int h = 0; h < p.group; ++h) {
#pragma unroll 1
      for (int tile = work().first; tile < work().past; ++tile, ++steps) load_rows(h, tile);
    }
  }

 private:
  __device__ __forceinline__ void load_keys() const {
    const int row = work().first_key_row + work().key;
    if constexpr (of_gradient) {
#pragma unroll 1
      for (int group = 0; group < Shape::groups; ++group) {
        rings.empty_v(group).wait(works % 2 ^ 1U);
        rings.full_v(group).arrive_expecting(Shape::group_bytes);
        load_panels(rings.v(group), p.v, row + group * Shape::group_keys, work().kv_head,
                    rings.full_v(group), Shape::group_keys * panel_row_bytes);
      }
    } else {
      rings.empty_k(works).wait(works / Shape::k_stages % 2 ^ 1U);
      rings.full_k(works).arrive_expecting(Shape::key_bytes);
      load_panels(rings.k(works), p.k, row, work().kv_head, rings.full_k(works),
                  Shape::key_panel_bytes);
    }
  }
  __device__ __forceinline__ void load_rows(int h, int tile) const {
    constexpr int stages = of_gradient ? Shape::do_stages : Shape::stages;
    const Mbarrier full = of_gradient ? rings.full_do(steps) : rings.full_q(steps);
    (of_gradient ? rings.empty_do(steps) : rings.empty_q(steps)).wait(bwd_empty<stages>(steps));
    constexpr bool has_units = of_gradient && Shape::choice.in_units;
    full.arrive_expecting(Shape::row_bytes + (has_units ? 2 : 1) * Shape::vector_bytes);
    load_panels(of_gradient ? rings.d_o(steps) : rings.q(steps), of_gradient ? p.d_o : p.q,
                work().first_query_row + tile * Shape::Br, work().kv_head * p.group + h, full,
                Shape::row_panel_bytes);
    const int number = (work().plane + h) * p.sums.tiles + tile;
    load_bytes(of_gradient ? rings.delta(steps) : rings.lse(steps),
               (of_gradient ? p.sums.delta : p.sums.lse) + std::int64_t{number} * Shape::Br,
               Shape::vector_bytes, full);
    if constexpr (has_units) {
      load_bytes(rings.units_in_one(steps), p.sums.units_in_one + std::int64_t{number} * Shape::Br,
                 Shape::vector_bytes, full);
    }
  }
  __device__ __forceinline__ void load_panels(SharedAddress target, const TensorMap& map, int row,
                                              int head, Mbarrier full, int panel_bytes) const {
#pragma unroll
    for (int panel = 0; panel < Shape::panels; ++panel) {
      load_box(target + panel * panel_bytes, map, {panel * panel_columns, row, head, work().entry},
               full, L2Hint::evict_last);
    }
  }
};

/// The thread that takes key tiles, and says to all others which one is next.
template <typename Shape>
struct BwdLoader : BwdStream<Shape, false> {
  using Stream = BwdStream<Shape, false>;
  using Stream::p;
  using Stream::rings;
  using Stream::work;
  using Stream::works;

  __device__ __forceinline__ void run() {
    prefetch_map(p.q);
    prefetch_map(p.k);
    wait_for_predecessor();
    auto tile = static_cast<int>(blockIdx.x);
    while (tile < p.tiles) {
      rings.empty_work(works).wait(bwd_empty(works));
      // Asked for before it is needed: the answer takes a microsecond.
      work().next = p.counters != nullptr ? static_cast<int>(gridDim.x + atomicAdd(p.counters, 1U))
                                          : tile + static_cast<int>(gridDim.x);
      describe(tile, work());
      tile = work().next;
      if (work().count > 0) {
        rings.full_work(works).arrive();
        this->load();
        tile = work().next;
        ++works;
      }
    }
    let_successor_begin();
    rings.empty_work(works).wait(bwd_empty(works));
    work().count = BwdWork::none_left;
    rings.full_work(works).arrive();
    if (p.counters != nullptr && atomicAdd(p.counters + 1, 1U) == gridDim.x - 1) {
      p.counters[0] = 0;  // every block has taken its last
      p.counters[1] = 0;
    }
  }

 private:
  /// Tiles of a KV head in turn; or, with sections, tiles of some heads side by side, those that
  /// most rows see first: under a causal mask the tiles of the first keys.
  __device__ __forceinline__ void describe(int i, BwdWork& work) const {
    int head = i / p.key_tiles, tile = i % p.key_tiles;
    if (p.section > 0) {
      const int in_section = p.section * p.key_tiles, first = i / in_section * p.section;
      const int heads = min(p.section, p.batch * p.kv_heads - first), within = i % in_section;
      head = first + within % heads;
      tile = within / heads;
    }
    const int entry = head / p.kv_heads;
    work.kv_head = head % p.kv_heads;
    work.plane = entry * p.heads + work.kv_head * p.group;
    work.key = tile * Shape::Bc;
    work.request = entry;
    work.entry = p.query_starts == nullptr ? entry : 0;
    work.first_query_row = work.first_key_row = 0;
    work.queries = p.queries;
    work.keys = p.keys;
    if (p.query_starts != nullptr) {
      work.first_query_row = p.query_starts[entry];
      work.first_key_row = p.key_starts[entry];
      work.queries = p.query_starts[entry + 1] - work.first_query_row;
      work.keys = p.key_starts[entry + 1] - work.first_key_row;
    }
    constexpr int limit = 1 << 29;  // more than any length, and sums of three stay in 32 bits
    const KeyReach reach(p.problem, work.queries, work.keys);
    work.begin = max(reach.begin, -limit);
    work.reach = min(reach.reach, limit);
    work.diagonal = p.problem.mask == Mask::none
                        ? work.keys - work.queries  // the last query's is the last key
                        : diagonal_of(p.problem, work.queries, work.keys);
    const BwdRowTiles rows = bwd_tiles_by_mask(work, work.key, work.key + Shape::Bc);
    work.first = rows.first;
    work.past = rows.past;
    work.count = work.key < work.keys ? 1 : 0;
    if (p.sums.row_tiles == nullptr) return;
    read_again();
    const BwdSeen seen = p.sums.row_tiles[work.request * p.key_tiles + work.key / Shape::Bc];
    work.first = seen.first;
    work.past = seen.past;
  }
  /// Nothing that was read or written before is kept in a register, of which the thread has few.
  static __device__ __forceinline__ void read_again() { asm volatile("" ::: "memory"); }
};

/// The thread that loads V and dO.
template <typename Shape>
struct BwdGradientLoader : BwdStream<Shape, true> {
  using Stream = BwdStream<Shape, true>;
  using Stream::p;
  using Stream::rings;
  using Stream::work;
  using Stream::works;

  __device__ __forceinline__ void run() {
    prefetch_map(p.v);
    prefetch_map(p.d_o);
    wait_for_predecessor();
    for (;; ++works) {
      rings.full_work(works).wait(bwd_full(works));
      if (work().count == BwdWork::none_left) break;
      this->load();
      rings.empty_work(works).arrive();
    }
  }
};

/// The thread that adds 64 columns of each step's dQ to their sums in memory.
template <typename Shape>
struct BwdAdder {
  const BwdParameters& p;
  const typename Shape::Rings& rings;
  const int panel;

  __device__ __forceinline__ void run() const {
    wait_for_predecessor();
    unsigned steps = 0;
    for (unsigned n = 0;; ++n) {
      rings.full_work(n).wait(bwd_full(n));
      const BwdWork& work = rings.work(n);
      if (work.count == BwdWork::none_left) break;
      const int plane = work.plane, first = work.first, past = work.past;
      rings.empty_work(n).arrive();
#pragma unroll 1
      for (int h = 0; h < p.group; ++h) {
#pragma unroll 1
        for (int tile = first; tile < past; ++tile, ++steps) {
          const std::int64_t at = static_cast<std::int64_t>(plane + h) * p.sums.tiles + tile;
          rings.full_dq(panel).wait(steps % 2);
          using Sum = std::conditional_t<Shape::choice.in_units, std::int32_t, float>;
          add_bytes(reinterpret_cast<Sum*>(p.sums.dq) + at * (Shape::dq_bytes / 4) +
                        panel * Shape::dq_panel_bytes / 4,
                    rings.dq(panel), Shape::dq_panel_bytes);
          commit_stores();
          wait_until_stores_have_read();
          rings.empty_dq(panel).arrive();
        }
      }
    }
    wait_until_stores_are_done();
  }
};

}  // namespace attest
