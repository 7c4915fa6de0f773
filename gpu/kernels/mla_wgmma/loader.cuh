#pragma once

#include "gpu/kernels/decode_mma/unit_lists.cuh"
#include "gpu/kernels/mla_wgmma/work.cuh"
#include "gpu/primitives/tma.cuh"
#include "gpu/primitives/warpgroup.cuh"

namespace attest {

/// Finds the block's units, as one warp does while others load.
template <typename Shape>
__device__ void find_mla_units(const MlaParameters& p, const MlaShared<Shape>& shared) {
  ChunkList list(p.a, p.sizes);
  for (unsigned n = 0;; ++n) {
    MlaWork& work = shared.work(n);
    shared.work_empty(n).wait(n / 2 % 2 ^ 1U);
    __syncwarp();  // all lanes have seen that phase before others can end the next one
    DecodeUnit unit;
    const bool exists = list.find(static_cast<int>(blockIdx.x + n * gridDim.x), unit);
    if (threadIdx.x % 32 == 0) {
      if (exists) work.take(p.sizes, unit);
      work.exists = exists;
      shared.work_full(n).arrive();
    }
    __syncwarp();
    if (!exists) return;
  }
}

/// A warp that asks the copy engine for one part of each key tile: each part has a warp of its own,
/// so that none waits for a part that is given back late. Keys that the entry has not got are never
/// touched: of a tile they leave what was there.
template <typename Shape>
class MlaLoader {
 public:
  __device__ MlaLoader(const MlaParameters& p, const MlaShared<Shape>& shared, int part)
      : p_(p),
        shared_(shared),
        part_(part),
        first_(Shape::first_panel(part)),
        past_(Shape::past_panel(part)),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ void run() const {
    if (part_ == Shape::no_values && is_elected()) prefetch_map(p_.k);  // a lane at a time does it
    __syncwarp();
    unsigned loaded[Shape::stages] = {0, 0};  // tiles
    for (unsigned n = 0;; ++n) {
      shared_.work_full(n).wait(n / 2 % 2);
      const MlaWork& work = shared_.work(n);
      if (work.exists == 0) return;
      const int tiles = work.tiles;
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) {
        load_part(work, tile, tile % 2, tile % 2 == 0 ? loaded[0]++ : loaded[1]++);
      }
      __syncwarp();  // all lanes have read the work
      if (lane_ == 0) shared_.work_empty(n).arrive();
    }
  }

 private:
  /// Cut of a tile into boxes: `boxes` of `rows` keys, then single keys.
  struct Cut {
    const TensorMap& map;
    int rows, boxes, single;
  };
  __device__ Cut cut_of(int keys) const {
    const bool is_packed = p_.a.key_starts != nullptr && p_.a.page_table.page_size == 0;
    if (is_packed && keys < Shape::tile_keys) return {p_.k_eights, 8, keys / 8, keys % 8};
    return {p_.k, p_.box_rows, (keys + p_.box_rows - 1) / p_.box_rows, 0};
  }

  __device__ void load_part(const MlaWork& work, int tile, int stage, unsigned n) const {
    const Cut cut = cut_of(work.keys_of(tile));
    const int first_key = work.first_key + tile * Shape::tile_keys;
    const BoxStart first_box = box_at(work, first_key, first_);
    shared_.empty(stage, part_).wait(n % 2 ^ 1U);
    __syncwarp();  // all lanes have seen that phase before bytes can end the next one
    if (cut.boxes == 1 && cut.rows == Shape::tile_keys) {
      if (is_elected()) load_panels(first_box, stage);
      __syncwarp();
      return;
    }
    if (cut.single > 0) copy_single(work, first_key, cut, stage, first_, past_);
    if (lane_ == 0) {
      for (int panel = first_; panel < past_; ++panel) {
        shared_.full(stage, panel)
            .arrive_expecting(static_cast<unsigned>(cut.boxes * cut.rows * panel_row_bytes));
      }
    }
    __syncwarp();
    const int boxes = cut.boxes * (past_ - first_);
    for (int i = lane_; i < boxes; i += 32) {
      const int panel = first_ + i / cut.boxes, row = i % cut.boxes * cut.rows;
      load_box(shared_.k_tile(stage) + (panel * Shape::panel_bytes + row * panel_row_bytes),
               cut.map, box_at(work, first_key + row, panel), shared_.full(stage, panel),
               L2Hint::evict_first);
    }
  }
  /// Asks for panels of a tile that lies in one box a panel: one thread, since others would only
  /// wait for it.
  __device__ void load_panels(BoxStart at, int stage) const {
    SharedAddress to = shared_.k_tile(stage) + first_ * Shape::panel_bytes;
#pragma unroll 1
    for (int panel = first_; panel < past_; ++panel) {
      const Mbarrier full = shared_.full(stage, panel);
      full.arrive_expecting(Shape::panel_bytes);
      load_box(to, p_.k, at, full, L2Hint::evict_first);
      to = to + Shape::panel_bytes;
      at.column += panel_columns;
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
  __device__ void copy_single(const MlaWork& work, int first_key, const Cut& cut, int stage,
                              int first, int past) const {
    using T = typename Shape::T;
    constexpr int panel_chunks = panel_row_bytes / 16, chunk = 16 / static_cast<int>(sizeof(T));
    const int before = cut.boxes * cut.rows, chunks = (past - first) * panel_chunks;
    const T* const from =
        static_cast<const T*>(p_.a.k) +
        p_.a.k_strides.offset(0, work.unit.kv_head, work.unit.of.k_start + first_key + before);
    unsigned char* const tile = shared_.first + Shape::k_at + stage * Shape::tile_bytes;
    for (int i = lane_; i < cut.single * chunks; i += 32) {
      const int row = i / chunks, column = first * panel_chunks + i % chunks;
      const auto& x =
          *reinterpret_cast<const uint4*>(from + row * p_.a.k_strides.row + column * chunk);
      *reinterpret_cast<uint4*>(tile + column / panel_chunks * Shape::panel_bytes +
                                swizzled_chunk(before + row, column % panel_chunks)) = x;
    }
    fence_async_shared();
    __syncwarp();
  }

  const MlaParameters& p_;
  const MlaShared<Shape>& shared_;
  const int part_, first_, past_;  ///< its panels are first_ to before past_
  const int lane_;
};

}  // namespace attest
