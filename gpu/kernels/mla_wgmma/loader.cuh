#pragma once

#include "gpu/kernels/mla_wgmma/work.cuh"
#include "gpu/primitives/tma.cuh"
#include "gpu/primitives/warpgroup.cuh"

namespace attest {

/// The warp that finds the block's units and asks the copy engine for their keys. Keys that the
/// entry has not got are never touched: of a tile they leave what was there.
template <typename Shape>
class MlaLoader {
 public:
  __device__ MlaLoader(const MlaParameters& p, const MlaShared<Shape>& shared)
      : p_(p), shared_(shared), lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ void run() {
    prefetch_map(p_.k);
    ChunkList list(p_.a, p_.sizes);
    unsigned tiles = 0;
    for (unsigned n = 0;; ++n) {
      MlaWork& work = shared_.work(n);
      shared_.work_empty(n).wait(n / 2 % 2 ^ 1U);
      {
        DecodeUnit unit;
        const bool exists = list.find(static_cast<int>(blockIdx.x + n * gridDim.x), unit);
        if (lane_ == 0) {
          if (exists) work.take(p_.sizes, unit);
          work.exists = exists;
          shared_.work_full(n).arrive();
        }
        __syncwarp();
        if (!exists) return;
      }
      if (p_.ahead > 0) {
        for (int tile = 0; tile < p_.ahead; ++tile) prefetch_tile(work, tile);
      }
      for (int tile = 0; tile < work.tiles; ++tile) {
        if (p_.ahead > 0) prefetch_tile(work, tile + p_.ahead);
        load_tile(work, tile, tiles++);
      }
    }
  }

 private:
  /// What a tile's boxes are: `boxes` of `rows` keys, then single keys.
  struct Cut {
    const TensorMap& map;
    int rows, boxes, single;
  };
  __device__ Cut cut_of(int keys) const {
    const bool is_packed = p_.a.key_starts != nullptr && p_.a.page_table.page_size == 0;
    if (is_packed && keys < Shape::tile_keys) return {p_.k_eights, 8, keys / 8, keys % 8};
    return {p_.k, p_.box_rows, (keys + p_.box_rows - 1) / p_.box_rows, 0};
  }

  /// `n`: of the tile in the block.
  __device__ void load_tile(const MlaWork& work, int tile, unsigned n) const {
    const Cut cut = cut_of(work.keys_of(tile));
    const int first_key = work.first_key + tile * Shape::tile_keys;
#pragma unroll 1
    for (int i = 0; i < Shape::parts; ++i) {
      const int part = Shape::part_in_turn(i);
      shared_.empty(n, part).wait(shared_.parity(n, part) ^ 1U);
      const int first = Shape::first_panel(part), panels = Shape::past_panel(part) - first;
      const int at = shared_.part_at(n, part);
      if (cut.single > 0) copy_single(work, first_key, cut, at, first, panels);
      if (lane_ == 0) {
        for (int panel = 0; panel < panels; ++panel) {
          shared_.full(n, part, panel)
              .arrive_expecting(static_cast<unsigned>(cut.boxes * cut.rows * panel_row_bytes));
        }
      }
      __syncwarp();
      for (int box = lane_; box < cut.boxes * panels; box += 32) {
        const int panel = box / cut.boxes, row = box % cut.boxes * cut.rows;
        load_box(shared_.base + (at + panel * Shape::panel_bytes + row * panel_row_bytes), cut.map,
                 box_at(work, first_key + row, first + panel), shared_.full(n, part, panel),
                 L2Hint::evict_first);
      }
    }
  }

  /// Asks for a tile to come into the L2 cache. A tile of single keys is left alone.
  __device__ void prefetch_tile(const MlaWork& work, int tile) const {
    if (tile >= work.tiles) return;
    const Cut cut = cut_of(work.keys_of(tile));
    const int first_key = work.first_key + tile * Shape::tile_keys;
    for (int i = lane_; i < cut.boxes * Shape::panels; i += 32) {
      const int panel = i / cut.boxes, row = i % cut.boxes * cut.rows;
      prefetch_box(cut.map, box_at(work, first_key + row, panel));
    }
  }

  __device__ BoxStart box_at(const MlaWork& work, int key, int panel) const {
    const DecodeUnit& unit = work.unit;
    BoxStart at{panel * panel_columns, key, unit.kv_head, unit.entry};
    if (p_.a.page_table.page_size > 0) {
      const auto size = static_cast<int>(p_.a.page_table.page_size);
      at.entry = p_.a.page_table.of(unit.entry)[key / size];
      at.row = key % size;
    } else if (p_.a.key_starts != nullptr) {
      at.row += unit.of.k_start;
      at.entry = 0;
    }
    return at;
  }

  /// Copies the keys behind the boxes, fewer than eight, whose memory is followed by another
  /// entry's or by nothing at all.
  __device__ void copy_single(const MlaWork& work, int first_key, const Cut& cut, int at, int first,
                              int panels) const {
    using T = typename Shape::T;
    constexpr int panel_chunks = panel_row_bytes / 16, chunk = 16 / static_cast<int>(sizeof(T));
    const int before = cut.boxes * cut.rows, chunks = panels * panel_chunks;
    const T* const from =
        static_cast<const T*>(p_.a.k) +
        p_.a.k_strides.offset(0, work.unit.kv_head, work.unit.of.k_start + first_key + before) +
        first * panel_columns;
    for (int i = lane_; i < cut.single * chunks; i += 32) {
      const int row = i / chunks, column = i % chunks;
      const auto& x =
          *reinterpret_cast<const uint4*>(from + row * p_.a.k_strides.row + column * chunk);
      *reinterpret_cast<uint4*>(shared_.first + at + column / panel_chunks * Shape::panel_bytes +
                                swizzled_chunk(before + row, column % panel_chunks)) = x;
    }
    fence_async_shared();
    __syncwarp();
  }

  const MlaParameters& p_;
  const MlaShared<Shape>& shared_;
  const int lane_;
};

}  // namespace attest
