#pragma once

#include "gpu/kernels/bwd_wgmma/rings.cuh"
#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

/// The one thread that asks the copy engine for tiles, and says which key tile they are for. For
/// each key tile Q and dO come head by head, their tiles in ascending order.
template <typename Shape>
struct BwdLoader {
  const BwdParameters& p;
  const BwdRings<Shape>& rings;
  unsigned works = 0, steps = 0;  ///< so far

  __device__ __forceinline__ void run() {
    prefetch_map(p.q);
    prefetch_map(p.k);
    prefetch_map(p.v);
    prefetch_map(p.d_o);
    auto tile = static_cast<int>(blockIdx.x);
    while (tile < p.tiles) {
      // Asked for before it is needed: the answer takes a microsecond.
      const int next = p.counters != nullptr
                           ? static_cast<int>(gridDim.x + atomicAdd(p.counters, 1U))
                           : tile + static_cast<int>(gridDim.x);
      describe(tile);
      if (work().count > 0) {
        announce();
        load();
        ++works;
      }
      tile = next;
    }
    rings.empty_work(works).wait(bwd_empty(works));
    work().count = BwdWork::none_left;
    announce();
    if (p.counters != nullptr && atomicAdd(p.counters + 1, 1U) == gridDim.x - 1) {
      p.counters[0] = 0;  // every block has taken its last
      p.counters[1] = 0;
    }
  }

 private:
  /// Tiles of a KV head in turn; or, with sections, tiles of some heads side by side, those that
  /// most rows see first: under a causal mask the tiles of the first keys.
  __device__ __forceinline__ void describe(int i) const {
    rings.empty_work(works).wait(bwd_empty(works));
    BwdWork& work = rings.work(works);
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
    const BwdRowTiles rows(work, work.key, work.key + Shape::Bc);
    work.first = rows.first;
    work.past = rows.past;
    work.count = work.key < work.keys ? 1 : 0;
  }
  /// In shared memory, not in registers: this thread has few.
  __device__ __forceinline__ BwdWork& work() const { return rings.work(works); }
  __device__ __forceinline__ void announce() const { rings.full_work(works).arrive(); }

  __device__ __forceinline__ void load() {
    const BwdWork& work = rings.work(works);
    const unsigned n = works;
    const int key_row = work.first_key_row + work.key;
    rings.empty_k(n).wait(n / Shape::k_stages % 2 ^ 1U);
    load_tile(rings.k(n), p.k, key_row, work.kv_head, work.entry, rings.full_k(n),
              Shape::key_panel_bytes);
    bool has_v = false;
#pragma unroll 1
    for (int h = 0; h < p.group; ++h) {
      const int head = work.kv_head * p.group + h;
#pragma unroll 1
      for (int tile = work.first; tile < work.past; ++tile) {
        const std::int64_t vector =
            (static_cast<std::int64_t>(work.plane + h) * p.sums.tiles + tile) * Shape::Br;
        const int row = work.first_query_row + tile * Shape::Br;
        rings.empty_q(steps).wait(bwd_empty(steps));
        load_tile(rings.q(steps), p.q, row, head, work.entry, rings.full_q(steps),
                  Shape::row_panel_bytes, p.sums.lse + vector, rings.lse(steps));
        if (!has_v) load_v();
        has_v = true;
        rings.empty_do(steps).wait(bwd_empty(steps));
        load_tile(rings.d_o(steps), p.d_o, row, head, work.entry, rings.full_do(steps),
                  Shape::row_panel_bytes, p.sums.delta + vector, rings.delta(steps));
        ++steps;
      }
    }
    if (!has_v) load_v();  // no row sees a key: all the same, so that buffers are used in turn
  }
  __device__ __forceinline__ void load_v() {
    const BwdWork& work = rings.work(works);
    rings.empty_v().wait(works % 2 ^ 1U);
    load_tile(rings.v(), p.v, work.first_key_row + work.key, work.kv_head, work.entry,
              rings.full_v(), Shape::key_panel_bytes);
  }
  /// A tile, and with `vector` a number for each of its rows.
  __device__ __forceinline__ void load_tile(SharedAddress target, const TensorMap& map, int row,
                                            int head, int entry, Mbarrier full, int panel_bytes,
                                            const float* vector = nullptr,
                                            const float* vector_target = nullptr) const {
    full.arrive_expecting(static_cast<unsigned>(Shape::panels * panel_bytes +
                                                (vector == nullptr ? 0 : Shape::vector_bytes)));
#pragma unroll
    for (int panel = 0; panel < Shape::panels; ++panel) {
      load_box(target + panel * panel_bytes, map, {panel * panel_columns, row, head, entry}, full,
               L2Hint::evict_last);
    }
    if (vector != nullptr) load_bytes(vector_target, vector, Shape::vector_bytes, full);
  }
};

/// The one thread that adds dQ of each step to its sums in memory.
template <typename Shape>
struct BwdAdder {
  const BwdParameters& p;
  const BwdRings<Shape>& rings;

  __device__ __forceinline__ void run() const {
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
          rings.full_dq().wait(steps % 2);
          add_bytes(p.sums.dq + at * (Shape::Br * Shape::D), rings.dq(), Shape::dq_bytes);
          commit_stores();
          wait_until_stores_have_read();
          rings.empty_dq().arrive();
        }
      }
    }
    wait_until_stores_are_done();
  }
};

}  // namespace attest
