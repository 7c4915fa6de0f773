#pragma once

#include "gpu/kernels/fa3_wgmma/rings.cuh"
#include "gpu/primitives/delay.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

/// The one thread that asks the copy engine for tiles, and says which output tile they are for. Key
/// tiles come last first; K is one ahead of V.
template <typename Shape, typename Rings = Fa3Rings<Shape>>
struct Fa3Loader {
  using Work = typename Shape::Work;
  const typename Shape::Parameters& p;
  const Rings& rings;
  unsigned k_tiles = 0, v_tiles = 0, q_tiles = 0;
  /// Key tiles at the end of a group's last work that it does not see. It gives them back with
  /// those that it leaves out at the start of the next: there it has products to hide the wait
  /// behind.
  int unread[Shape::consumers] = {};

  __device__ __forceinline__ void run() {
    prefetch_map(p.q);
    prefetch_map(p.k);
    prefetch_map(p.v);
    auto tile = static_cast<int>(blockIdx.x);
    Work work = work_of(tile);
    while (work.count != Fa3Work::none_left) {
      // Asked for before it is needed: the answer takes a microsecond.
      tile = p.counters != nullptr ? static_cast<int>(gridDim.x + atomicAdd(p.counters, 1U))
                                   : tile + static_cast<int>(gridDim.x);
      load_all_but_last_v(work);
      const Work next = work_of(tile);
      if constexpr (Shape::q_stages == 1) prefetch_q(next);
      if (work.count > 0) load_v(work, work.first);
      work = next;
    }
    announce(work);
    if (p.counters != nullptr && atomicAdd(p.counters + 1, 1U) == gridDim.x - 1) {
      p.counters[0] = 0;  // every block has taken its last
      p.counters[1] = 0;
    }
  }
  /// Tells warps that wait for tiles of V, without knowing how many there are, that none follows.
  __device__ __forceinline__ void end() {
    const auto stage = static_cast<int>(v_tiles % Shape::v_stages);
    rings.empty_v(stage).wait(v_tiles / Shape::v_stages % 2 ^ 1U);
    rings.end(stage);
  }

 private:
  __device__ Work work_of(int i) const {
    if constexpr (Shape::choice.lists) {
      return listed(dense_work_of(i));
    } else if constexpr (Shape::choice.masked) {
      return trimmed(dense_work_of(i), Shape::Br);
    } else {
      return dense_work_of(i);
    }
  }
  __device__ __forceinline__ Fa3Work dense_work_of(int i) const {
    if (i >= p.tiles) return {0, 0, 0, 0, 0, 0, Fa3Work::none_left, 0};
    const TilePosition at = tile_position(p.order, p.order_group, p.grid, i);
    const auto tile = static_cast<int>(at.tile), plane = static_cast<int>(at.head);
    const int part = tile % p.splits, row = p.first_row + tile / p.splits * Shape::Br;
    const int last_row = min(row + Shape::Br, p.queries) - 1;
    const int all = (p.past_key(last_row) + Shape::Bc - 1) / Shape::Bc;
    // Every split gets the same number of key tiles, or one more.
    const int first = part * (all / p.splits) + min(part, all % p.splits);
    const int count = all / p.splits + (part < all % p.splits ? 1 : 0);
    const int head = plane % p.heads;
    return {row, part, plane / p.heads, head, head / p.group, first, count, 0};
  }

  /// The work less the key tiles at either end that none of its `rows` rows sees. Some row is one
  /// that there is.
  __device__ __forceinline__ Fa3Work trimmed(Fa3Work work, int rows) const {
    if (work.count <= 0) return work;
    const int last_row = min(work.row + rows, p.queries) - 1, end = work.first + work.count;
    const int first_key = p.range_of(work.entry, max(0, work.row)).first;
    const int past_key = p.range_of(work.entry, last_row).past;
    const int past = min(end, (past_key + Shape::Bc - 1) / Shape::Bc);
    work.first = first_key < past_key ? max(work.first, first_key / Shape::Bc) : past;
    work.count = max(0, past - work.first);
    return work;
  }

  /// The key tiles that the list of the work's rows names, all of them.
  __device__ __forceinline__ Fa3ListedWork listed(Fa3Work work) const {
    Fa3ListedWork all{work, nullptr, p.item_shift, 0};
    static_assert(Shape::Bc == 2 * fa3_unit_keys);
    if (work.count == Fa3Work::none_left) return all;
    const std::int64_t list = p.lists.list_of(work.entry, work.row);
    all.items = p.lists.items_of(list);
    all.first = 0;
    all.units = p.lists.counts[list] << p.item_shift;
    all.count = (all.units + 1) / 2;
    return all;
  }

  /// A warpgroup's place among the rows of the next output tile. It turns with each tile: under a
  /// causal mask the upper rows see fewer keys, and who had them has the lower ones next, so that
  /// over two tiles all have as much to do. Windows with a first key leave as many tiles to each.
  __device__ __forceinline__ int place_of(int group) const {
    if constexpr (Shape::choice.masked) {
      if (p.has_first_keys()) return group;
    }
    return q_tiles % 2 == 0 ? group : Shape::consumers - 1 - group;
  }
  /// A warpgroup's share of the next output tile: 64 rows, and the key tiles that some of them see.
  __device__ __forceinline__ Work share_of(Work work, int group) const {
    if (work.count == Fa3Work::none_left) return work;
    work.row += place_of(group) * Shape::group_rows;
    const bool has_rows = 0 <= work.row && work.row < p.queries;
    if constexpr (Shape::choice.masked) return masked_share_of(work, has_rows);
    const int past = p.past_key(min(work.row + Shape::group_rows, p.queries) - 1);
    const int tiles =
        Shape::choice.lists ? work.count : (past + Shape::Bc - 1) / Shape::Bc - work.first;
    const int seen = has_rows ? tiles : 0;
    const int count = max(0, min(work.count, seen));
    work.skipped = work.count - count;
    work.count = count;
    return work;
  }
  /// Rows of an entry's documents may see keys that lie far apart. More tiles than may wait for a
  /// group's next work are not left out at the end of its work, but masked.
  __device__ __forceinline__ Fa3Work masked_share_of(const Fa3Work& work, bool has_rows) const {
    Fa3Work share = work;
    if (has_rows) share = trimmed(work, Shape::group_rows);
    if (!has_rows || share.count == 0) {
      share.skipped = work.count;
      share.count = 0;
      return share;
    }
    const int past = share.first + share.count;
    share.first = min(share.first, work.first + Shape::most_unread);
    share.count = past - share.first;
    share.skipped = work.first + work.count - past;
    return share;
  }
  __device__ __forceinline__ static BoxStart q_box(const Fa3Work& share, int panel) {
    return {panel * Shape::box_columns, share.row, share.head, share.entry};
  }
  /// Into the L2 cache, where Q has to wait for the memory of the Q before it.
  __device__ __forceinline__ void prefetch_q(const Work& work) const {
    if (work.count <= 0) return;
#pragma unroll
    for (int group = 0; group < Shape::consumers; ++group) {
      const Work share = share_of(work, group);
#pragma unroll
      for (int panel = 0; panel < Shape::panels; ++panel) {
        prefetch_box(p.q, q_box(share, panel));
      }
    }
  }

  /// Q of every warpgroup, after what is to be done with it.
  __device__ __forceinline__ void announce(const Work& work) {
    const auto stage = static_cast<int>(q_tiles % Shape::q_stages);
#pragma unroll
    for (int group = 0; group < Shape::consumers; ++group) {
      rings.empty_q(stage, group).wait(q_tiles / Shape::q_stages % 2 ^ 1U);
      Work share = share_of(work, group);
      if constexpr (Shape::choice.masked) {
        share.skipped += unread[group];
        unread[group] = share.count > 0 ? share.first - work.first : 0;
      }
      rings.work(q_tiles, group) = share;
      const Mbarrier full = rings.full_q(stage, group);
      maybe_pause<Shape>(p.delay_seed);
      if (work.count <= 0) {
        full.arrive();
        continue;
      }
      full.arrive_expecting(Shape::q_bytes);
#pragma unroll
      for (int panel = 0; panel < Shape::panels; ++panel) {
        load_box(rings.q_tile(stage, group) + panel * Shape::q_panel_bytes, p.q,
                 q_box(share, panel), full, L2Hint::evict_first);
      }
    }
    ++q_tiles;
  }

  template <int panels>
  __device__ __forceinline__ void load_tile(SharedAddress to, const TensorMap& map,
                                            const Work& work, int tile, Mbarrier full,
                                            Mbarrier empty, unsigned parity) {
    const auto first_key = first_key_of(key_tile_of(work, tile));
    empty.wait(parity ^ 1U);
    maybe_pause<Shape>(p.delay_seed);
    full.arrive_expecting(panels * Shape::kv_panel_bytes);
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      load_rows(to + panel * Shape::kv_panel_bytes, map, work, panel, first_key, full);
    }
  }
  static __device__ __forceinline__ int first_key_of(int tile) {
    return tile * Shape::Bc;
  }
  /// First keys of both units.
  static __device__ __forceinline__ int2 first_key_of(const Fa3KeyUnits& tile) {
    return {tile.unit[0] * fa3_unit_keys, tile.unit[1] * fa3_unit_keys};
  }
  /// One panel of a key tile.
  __device__ __forceinline__ static void load_rows(SharedAddress to, const TensorMap& map,
                                                   const Work& work, int panel, int first_key,
                                                   Mbarrier full) {
    load_box(to, map, {panel * Shape::box_columns, first_key, work.kv_head, work.entry}, full,
             L2Hint::evict_last);
  }
  __device__ __forceinline__ static void load_rows(SharedAddress to, const TensorMap& map,
                                                   const Work& work, int panel, int2 first_key,
                                                   Mbarrier full) {
    load_rows(to, map, work, panel, first_key.x, full);
    load_rows(to + fa3_unit_keys * panel_row_bytes, map, work, panel, first_key.y, full);
  }
  __device__ __forceinline__ void load_k(const Work& work, int tile) {
    const auto stage = static_cast<int>(k_tiles % Shape::k_stages);
    load_tile<Shape::panels>(rings.k_tile(stage), p.k, work, tile, rings.full_k(stage),
                             rings.empty_k(stage), k_tiles / Shape::k_stages % 2);
    ++k_tiles;
  }
  __device__ __forceinline__ void load_v(const Work& work, int tile) {
    const auto stage = static_cast<int>(v_tiles % Shape::v_stages);
    load_tile<Shape::v_panels>(rings.v_tile(stage), p.v, work, tile, rings.full_v(stage),
                               rings.empty_v(stage), v_tiles / Shape::v_stages % 2);
    ++v_tiles;
  }

  __device__ __forceinline__ void load_all_but_last_v(const Work& work) {
    if (work.count == 0) {
      announce(work);
      return;
    }
    const int last = work.first + work.count - 1;
    load_k(work, last);
    announce(work);
    for (int tile = last - 1; tile >= work.first; --tile) {
      load_k(work, tile);
      load_v(work, tile + 1);
    }
  }
};

}  // namespace attest
