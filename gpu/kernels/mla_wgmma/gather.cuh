#pragma once

#include "gpu/kernels/mla_wgmma/listed_work.cuh"
#include "gpu/primitives/copy_arrival.cuh"

namespace attest {

/// The number, but nothing that follows from it is kept: copies of four panels would keep a
/// register each that says whether they copy.
__device__ __forceinline__ unsigned asked_anew(unsigned bits) {
#ifdef __CUDACC__
  asm volatile("" : "+r"(bits));
#endif
  return bits;
}

/// A warp that gathers one part of each tile of a list's keys, `panels` panels, 16 bytes a lane at
/// a time, to where the copy engine would put it. Rows of a tile past the chunk's end, and of keys
/// that the query does not see, become zeros; such keys are never read. The list is read two tiles
/// ahead, a page table one, since a key's address follows from a page, and the page from the list.
///
/// A lane copies chunk lane % 8 of rows 4 i + lane / 8. Places of rows 8 apart differ by a
/// constant, as those of panels do, on both sides: a tile takes 16 addresses of keys and two
/// places.
template <typename Shape, int panels>
class MlaGatherer {
  using T = typename Shape::T;
  static constexpr int halves = Shape::tile_keys / 32;  ///< a lane has a key of each

 public:
  __device__ __forceinline__ MlaGatherer(const MlaParameters& p, const MlaShared<Shape>& shared,
                                         int part)
      : p_(p), shared_(shared), part_(part) {}

  __device__ __forceinline__ void run() const {
    unsigned loaded[Shape::stages] = {0, 0};  // tiles
    for (unsigned n = 0;; ++n) {
      shared_.work_full(n).wait(n / 2 % 2);
      const MlaWork& work = shared_.work(n);
      if (work.exists == 0) break;
      gather_unit(work, loaded);
      __syncwarp();  // all lanes have read the work
      if (lane() == 0) shared_.work_empty(n).arrive();
    }
    AsyncCopies::commit();
    AsyncCopies::wait<0>();
  }

 private:
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  /// Place of a key in K: a row of an entry, or of a page. Not its address yet, which would have to
  /// wait for the page's number.
  struct Key {
    int entry = 0, row = -1;  ///< -1: there is no key, or the mask hides it
  };
  /// A chunk of a query's list.
  struct List {
    const MlaParameters& p;
    const MlaWork& work;
    const std::int32_t* items;
    int past_key;  ///< of what the mask leaves the query

    __device__ __forceinline__ List(const MlaParameters& parameters, const MlaWork& of)
        : p(parameters), work(of) {
      const int query = p.sizes.by_group.quotient(of.first_row);
      items = p.a.key_lists.items_of(p.a.key_lists.list_of(of.unit.entry, query));
      past_key = of.unit.of.reach.past_key(query);
    }
    /// The item at a place; of places past the chunk's end any number.
    __device__ __forceinline__ int item(int place) const {
      return place < work.past_key ? items[p.by_item.quotient(place)] : 0;
    }
    /// The key at a place, given its item.
    __device__ __forceinline__ Key key(int item, int place) const {
      const auto keys = static_cast<int>(p.a.key_lists.keys);
      const int key = item * keys + p.by_item.remainder(place);
      if (place >= work.past_key || key >= past_key) return {};
      const DecodeUnit& unit = work.unit;
      if (p.a.page_table.page_size > 0) {
        const Divisor& by_page = p.sizes.by_page;
        return {p.a.page_table.of(unit.entry)[by_page.quotient(key)], by_page.remainder(key)};
      }
      if (p.a.key_starts != nullptr) return {0, unit.of.k_start + key};
      return {unit.entry, key};
    }
    /// Address of a key; of none, one that is not read.
    __device__ __forceinline__ const T* address(const Key& key) const {
      const std::int64_t offset =
          key.row < 0 ? 0 : p.a.k_strides.offset(key.entry, work.unit.kv_head, key.row);
      return static_cast<const T*>(p.a.k) + offset;
    }
  };

  __device__ __forceinline__ void gather_unit(const MlaWork& work,
                                              unsigned (&loaded)[Shape::stages]) const {
    const List list(p_, work);
    const int tiles = work.tiles;
    // Place in the list of the lane's key in the half of a tile.
    const auto place = [&](int tile, int half) {
      return work.first_key + tile * Shape::tile_keys + 32 * half + lane();
    };
    int items[halves];
    Key keys[halves];
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      keys[h] = list.key(list.item(place(0, h)), place(0, h));
      items[h] = list.item(place(1, h));
    }
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      Key later[halves];
#pragma unroll
      for (int h = 0; h < halves; ++h) {
        later[h] = list.key(items[h], place(tile + 1, h));
        items[h] = list.item(place(tile + 2, h));
      }
      gather(list, keys, tile % 2, tile % 2 == 0 ? loaded[0]++ : loaded[1]++);
#pragma unroll
      for (int h = 0; h < halves; ++h) keys[h] = later[h];
    }
  }

  /// Gathers a stage's `n`th tile; lanes bring their keys.
  __device__ __forceinline__ void gather(const List& list, const Key (&keys)[halves], int stage,
                                         unsigned n) const {
    constexpr int copies = Shape::tile_keys / 4;  // of a panel
    const int first_panel = Shape::first_panel(part_), chunk = lane() % 8;
    unsigned seen[halves];
    const T* from[copies];
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      seen[h] = __ballot_sync(0xffffffffU, keys[h].row >= 0);
      const auto bits =
          static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(list.address(keys[h])));
#pragma unroll
      for (int i = 0; i < copies / halves; ++i) {
        from[h * copies / halves + i] = reinterpret_cast<const T*>(static_cast<std::uintptr_t>(
                                            __shfl_sync(0xffffffffU, bits, 4 * i + lane() / 8))) +
                                        first_panel * panel_columns + chunk * 8;
      }
    }
    shared_.empty(stage, part_).wait(n % 2 ^ 1U);
    __syncwarp();  // all lanes have seen that phase before arrivals can end the next one
    const SharedAddress to = shared_.k_tile(stage) + first_panel * Shape::panel_bytes;
    const SharedAddress even = to + swizzled_chunk(lane() / 8, chunk),
                        odd = to + swizzled_chunk(lane() / 8 + 4, chunk);
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      unsigned exists[halves];  // bit 4 i: the lane's i-th row of a half
#pragma unroll
      for (int h = 0; h < halves; ++h) exists[h] = asked_anew(seen[h]) >> lane() / 8;
#pragma unroll
      for (int i = 0; i < copies; ++i) {
        AsyncCopies::copy_or_zero<16>(
            (i % 2 == 0 ? even : odd) + (panel * Shape::panel_bytes + i / 2 * swizzle_bytes),
            from[i] + panel * panel_columns, (exists[i / 8] >> i % 8 * 4 & 1U) != 0);
      }
      arrive_after_copies(shared_.full(stage, first_panel + panel));
    }
    if constexpr (panels == 1) {  // what is no value
      if (lane() == 0) {
        shared_.seen(stage, n) = {seen[0], seen[1]};
        shared_.full(stage, first_panel).arrive();
      }
    }
  }

  const MlaParameters& p_;
  const MlaShared<Shape>& shared_;
  const int part_;
};

}  // namespace attest
