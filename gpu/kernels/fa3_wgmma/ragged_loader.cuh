#pragma once

#include "gpu/kernels/fa3_wgmma/ring_cursor.cuh"
#include "gpu/kernels/fa3_wgmma/rings.cuh"
#include "gpu/kernels/fa3_wgmma/row_copies.cuh"
#include "gpu/kernels/fa3_wgmma/work_list.cuh"
#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

/// Parameters of a launch with lengths or pages, besides those of the dense kernel.
struct Fa3RaggedParameters : Fa3Parameters {
  Fa3RowSource q_rows, k_rows, v_rows;  ///< the same tensors as the maps q, k and v
  PageTable pages;                      ///< page_size 0: K and V lie in no pages
  const Fa3WorkList* list;
  bool packs_queries, packs_keys;  ///< entries follow each other along the sequence
  bool is_bottom_right;            ///< reach grows with an entry's keys less its queries
  /// Rows of a box of K and V, which divide a page and a key tile: a power of two; 1: lanes copy
  /// the rows.
  int unit_rows;
  bool has_plain_rows;  ///< as wide as the tile, and offsets in units of 16 bytes have 32 bits
  /// Pages, and slots, of two key tiles.
  int page_step, slot_step;
};

/// One of the four warps that load where entries have lengths, or K and V lie in pages. Two load K,
/// two V, every other tile each, in Fa3Loader's order; the first one also announces the work, which
/// comes from a list.
///
/// Where pages have boxes of 8 rows and more, or there are none, the copy engine loads a key tile
/// by Bc / unit_rows boxes a panel, each asked for by a lane. From other pages lanes copy rows
/// (row_copies.cuh). So they do in any case with a tile in which an entry ends: rows past its last
/// key become zeros, so that nothing of what lies there comes into the answer, and nothing behind a
/// tensor is read.
template <typename Shape>
class Fa3RaggedLoader {
  using Work = typename Shape::Work;
  using Copies = Fa3RowCopies<Shape::D>;
  static constexpr int Bc = Shape::Bc;
  static_assert(Bc == 64 && Shape::group_rows == 64, "what row_copies.cuh copies");
  static_assert(Shape::k_stages == Shape::v_stages);

 public:
  __device__ __forceinline__ Fa3RaggedLoader(const Fa3RaggedParameters& p,
                                             const Fa3Rings<Shape>& rings)
      : p_(p), rings_(rings) {}

  /// All lanes.
  __device__ __forceinline__ void run() {
    if (is_first()) {
      prefetch_map(p_.q);
      prefetch_map(p_.k);
      prefetch_map(p_.v);
    }
    wait_for_predecessor();
    items_ = p_.list->items;
    if (p_.unit_rows > 1) {
      run_through<true>();
    } else {
      run_through<false>();
    }
    if (is_first() && atomicAdd(p_.counters + 1, 1U) == gridDim.x - 1) {
      p_.counters[0] = 0;  // every block has taken its last
      p_.counters[1] = 0;
    }
  }

 private:
  /// An output tile of one query head.
  struct Tile {
    const Fa3Item* item;  ///< null: there is none
    int head, kv_head;
    int count, keys;  ///< the item's
  };
  /// Place of a row of a key tile: a slot of a page, or a row.
  struct Place {
    const std::int32_t* number;  ///< the page's, in the table
    int entry, row;
  };

  static __device__ __forceinline__ int lane() { return Fa3Thread::lane(); }
  static __device__ __forceinline__ int warp() { return Fa3Thread::warp(); }
  static __device__ __forceinline__ bool is_first() { return warp() == 0 && lane() == 0; }
  static __device__ __forceinline__ bool loads_v() { return warp() >= 2; }

  template <bool has_boxes>
  __device__ __forceinline__ void run_through() {
    auto number = static_cast<int>(blockIdx.x);
    Tile tile = tile_of(number);
    while (tile.item != nullptr) {
      if (is_first()) number = static_cast<int>(gridDim.x + atomicAdd(p_.counters, 1U));
      load<has_boxes>(tile);
      tile = tile_of(shared_number(number));
    }
    load<has_boxes>(tile);  // nothing, and says so
  }

  /// Heads go in sections, as GridOrder::longest_first has them: their keys stay in the L2 cache.
  __device__ __forceinline__ Tile tile_of(int number) const {
    Tile tile{};
    if (number >= items_ * p_.heads) return tile;
    const auto most = static_cast<int>(p_.order_group);
    const int of_section = most < 1 || most > p_.heads ? p_.heads : most;
    const int first_head = number / (items_ * of_section) * of_section;
    const int heads = min(of_section, p_.heads - first_head);
    const int within = number - first_head * items_;
    tile.item = p_.list->first() + within / heads;
    tile.head = first_head + within % heads;
    tile.kv_head = tile.head / p_.group;
    tile.count = tile.item->count;
    tile.keys = tile.item->keys;
    return tile;
  }

  /// The number that the first lane of all has, in all lanes of all warps.
  __device__ __forceinline__ int shared_number(int number) {
    int& place = rings_.ticket(tickets_++);
    if (is_first()) place = number;
    sync_named(Shape::ticket, warpgroup_threads);
    return place;
  }

  /// All lanes have looked before one of them goes on: a phase may be over, and the next, before
  /// the last has looked.
  static __device__ __forceinline__ void wait_for(Mbarrier barrier, unsigned parity) {
    barrier.wait(parity);
    __syncwarp();
  }

  __device__ __forceinline__ int reach_of(const Fa3Item& item) const {
    return p_.is_bottom_right ? p_.reach + item.keys - item.queries : p_.reach;
  }

  /// Fa3Loader::share_of() of an entry.
  __device__ __forceinline__ Work share_of(const Tile& tile, int group) const {
    Work work{};
    work.count = Fa3Work::none_left;
    if (tile.item == nullptr) return work;
    const Fa3Item& item = *tile.item;
    work.row =
        item.row + (q_tiles_ % 2 == 0 ? group : Shape::consumers - 1 - group) * Shape::group_rows;
    work.part = work.first = 0;
    work.entry = p_.packs_queries ? 0 : item.entry;
    work.head = tile.head;
    work.kv_head = tile.kv_head;
    work.queries = item.queries;
    work.keys = item.keys;
    work.reach = reach_of(item);
    work.first_query = item.first_query;
    work.first_lse = p_.packs_queries
                         ? std::int64_t{tile.head} * item.all_queries + item.first_query
                         : (std::int64_t{item.entry} * p_.heads + tile.head) * item.queries;
    const bool has_rows = 0 <= work.row && work.row < item.queries;
    const int past = work.past_key(min(work.row + Shape::group_rows, item.queries) - 1);
    work.count = has_rows ? min(item.count, (past + Bc - 1) / Bc) : 0;
    work.skipped = item.count - work.count;
    return work;
  }

  /// Q of every warpgroup, after what is to be done with it.
  __device__ __forceinline__ void announce(const Tile& tile) {
    const auto stage = static_cast<int>(q_tiles_ % Shape::q_stages);
#pragma unroll 1
    for (int group = 0; group < Shape::consumers; ++group) {
      wait_for(rings_.empty_q(stage, group), q_tiles_ / Shape::q_stages % 2 ^ 1U);
      const Work share = share_of(tile, group);
      const Mbarrier full = rings_.full_q(stage, group);
      if (lane() == 0) rings_.work(q_tiles_, group) = share;
      if (share.count <= 0) {
        if (lane() == 0) full.arrive();
        continue;
      }
      const SharedAddress to = rings_.q_tile(stage, group);
      const int there = share.queries - share.row, row = share.first_query + share.row;
      if (p_.packs_queries && there < Shape::group_rows) {
        const std::int64_t offsets[2] = {
            p_.q_rows.strides.offset(0, share.head, row + lane()),
            p_.q_rows.strides.offset(0, share.head, row + lane() + 32)};
        Copies::copy_some(p_.q_rows.first, p_.columns, offsets, there, to);
        Copies::finish(full);
      } else if (lane() == 0) {
        full.arrive_expecting(Shape::q_bytes);
#pragma unroll
        for (int panel = 0; panel < Shape::panels; ++panel) {
          load_box(to + panel * Shape::q_panel_bytes, p_.q,
                   {panel * panel_columns, row, share.head, share.entry}, full,
                   L2Hint::evict_first);
        }
      }
    }
    ++q_tiles_;
  }

  /// Place of a key. The table is not asked for a key that is not there.
  __device__ __forceinline__ Place place_of(const Tile& tile, int key) const {
    if (p_.pages.page_size == 0) {
      return {nullptr, p_.packs_keys ? 0 : tile.item->entry, tile.item->first_key + key};
    }
    const auto page_size = static_cast<int>(p_.pages.page_size);
    const std::int32_t* const number = p_.pages.of(tile.item->entry) + key / page_size;
    return {number, key < tile.keys ? *number : 0, key % page_size};
  }
  /// Goes to the same row two key tiles before, if `exists`. The table's answer takes as long as a
  /// key's, so it is asked for a tile ahead.
  __device__ __forceinline__ void step(Place& place, bool exists) const {
    place.row -= p_.slot_step;
    if (p_.pages.page_size == 0 || !exists) return;
    place.number -= p_.page_step;
    if (place.row < 0) {
      place.row += static_cast<int>(p_.pages.page_size);
      --place.number;
    }
    place.entry = *place.number;
  }

  /// Loads this warp's key tiles, and does what Fa3Loader does behind the first of all the work.
  template <bool has_boxes>
  __device__ __forceinline__ void load(const Tile& tile) {
    const unsigned past = tiles_ + static_cast<unsigned>(tile.count);
    unsigned n = tiles_ + ((tiles_ ^ static_cast<unsigned>(warp())) & 1U);
    int index = static_cast<int>(past - n) - 1;
    Place low{}, high{};  // of the rows of a tile that the lane looks after
    if (index >= 0) {
      const int row = has_boxes ? lane() * p_.unit_rows : lane();
      if (row < Bc) low = place_of(tile, index * Bc + row);
      if (!has_boxes) high = place_of(tile, index * Bc + row + 32);
    }
    bool announces = warp() == 0;
    bool loads = !announces || n == tiles_;
#pragma unroll 1
    while (announces || index >= 0) {
      if (loads && index >= 0) {
        load_tile<has_boxes>(tile, n, index, low, high);
        n += 2;
        index -= 2;
      }
      loads = true;
      if (announces) announce(tile);
      announces = false;
    }
    tiles_ = past;
  }

  /// Key tile `index`, the block's `n`th.
  template <bool has_boxes>
  __device__ __forceinline__ void load_tile(const Tile& tile, unsigned n, int index, Place& low,
                                            Place& high) const {
    const auto stage = static_cast<int>(n % Shape::k_stages);
    const SharedAddress to = loads_v() ? rings_.v_tile(stage) : rings_.k_tile(stage);
    const Mbarrier full = loads_v() ? rings_.full_v(stage) : rings_.full_k(stage);
    const Fa3RowSource& from = loads_v() ? p_.v_rows : p_.k_rows;
    wait_for(loads_v() ? rings_.empty_v(stage) : rings_.empty_k(stage),
             n / Shape::k_stages % 2 ^ 1U);
    const int there = tile.keys - index * Bc;
    if constexpr (has_boxes) {
      if (there >= Bc) {
        load_boxes(loads_v() ? p_.v : p_.k, tile, low, to, full);
        if (lane() * p_.unit_rows < Bc) step(low, index >= 2);
        return;
      }
    }
    if (has_boxes || there < Bc || !p_.has_plain_rows) {
      Place places[2] = {low, high};
      if (has_boxes) {
#pragma unroll
        for (int h = 0; h < 2; ++h) places[h] = place_of(tile, index * Bc + 32 * h + lane());
      }
      const std::int64_t offsets[2] = {offset_of(from, tile, places[0]),
                                       offset_of(from, tile, places[1])};
      Copies::copy_some(from.first, p_.columns, offsets, there, to);
    } else {
      const unsigned offsets[2] = {static_cast<unsigned>(offset_of(from, tile, low) / 8),
                                   static_cast<unsigned>(offset_of(from, tile, high) / 8)};
      Copies::copy_all(from.first, offsets, to);
    }
    if (!has_boxes || lane() * p_.unit_rows < Bc) step(low, index >= 2);
    if (!has_boxes) step(high, index >= 2);
    Copies::finish(full);
  }

  __device__ __forceinline__ static std::int64_t offset_of(const Fa3RowSource& from,
                                                           const Tile& tile, const Place& place) {
    return from.strides.offset(place.entry, tile.kv_head, place.row);
  }

  __device__ __forceinline__ void load_boxes(const TensorMap& map, const Tile& tile,
                                             const Place& unit, SharedAddress to,
                                             Mbarrier full) const {
    if (lane() == 0) full.arrive_expecting(Shape::kv_bytes);
    __syncwarp();
    const int row = lane() * p_.unit_rows;
    if (row >= Bc) return;
#pragma unroll
    for (int panel = 0; panel < Shape::panels; ++panel) {
      load_box(to + (panel * Shape::kv_panel_bytes + row * panel_row_bytes), map,
               {panel * panel_columns, unit.row, tile.kv_head, unit.entry}, full,
               L2Hint::evict_last);
    }
  }

  const Fa3RaggedParameters& p_;
  const Fa3Rings<Shape>& rings_;
  int items_ = 0;
  /// Key tiles and output tiles of the block before this one's.
  unsigned tiles_ = 0, q_tiles_ = 0;
  unsigned tickets_ = 0;
};

}  // namespace attest
