#pragma once

#include "gpu/kernels/decode_mma/unit_lists.cuh"
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
      for (int tile = 0; tile < work.tiles; ++tile) load_tile(work, tile, tiles++);
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

  __device__ void load_tile(const MlaWork& work, int tile, unsigned n) const {
    const auto stage = static_cast<int>(n % Shape::stages);
    const unsigned parity = n / Shape::stages % 2;
    const Cut cut = cut_of(work.keys_of(tile));
    const int first_key = work.first_key + tile * Shape::tile_keys;
#pragma unroll 1
    for (int part = 0; part < Shape::parts; ++part) {
      shared_.empty(stage, part).wait(parity ^ 1U);
      const int first = Shape::first_panel(part), past = Shape::past_panel(part);
      if (cut.single > 0) copy_single(work, first_key, cut, stage, first, past);
      if (lane_ == 0) {
        for (int panel = first; panel < past; ++panel) {
          shared_.full(stage, panel)
              .arrive_expecting(static_cast<unsigned>(cut.boxes * cut.rows * panel_row_bytes));
        }
      }
      __syncwarp();
      const int boxes = cut.boxes * (past - first);
      for (int i = lane_; i < boxes; i += 32) {
        const int panel = first + i / cut.boxes, row = i % cut.boxes * cut.rows;
        load_box(shared_.k_tile(stage) + (panel * Shape::panel_bytes + row * panel_row_bytes),
                 cut.map, box_at(work, first_key + row, panel), shared_.full(stage, panel),
                 L2Hint::evict_first);
      }
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
  const int lane_;
};

}  // namespace attest
