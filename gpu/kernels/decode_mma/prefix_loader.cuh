#pragma once

#include "gpu/kernels/decode_mma/prefix_shape.cuh"
#include "gpu/primitives/async_copy.cuh"

namespace attest {

/// A warp that loads the tiles of K, or those of V, of a chunk of shared keys. Pages of 8 keys and
/// more come in boxes, one a lane; from others lanes copy rows. All keys of the chunk are there.
template <typename Shape>
class PrefixLoader {
  using T = typename Shape::T;
  using Ring = PrefixRing<Shape>;
  static constexpr int tile_keys = Shape::tile_keys;

 public:
  __device__ PrefixLoader(const PrefixParameters& p, const Ring& ring, const DecodeUnit& unit,
                          bool loads_v)
      : p_(p),
        ring_(ring),
        pages_(p.a.page_table.of(unit.entry)),
        page_size_(static_cast<int>(p.a.page_table.page_size)),
        first_key_(unit.chunk_first),
        tiles_((unit.chunk_past - unit.chunk_first) / tile_keys),
        head_(unit.kv_head),
        loads_v_(loads_v),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ void run() const {
    if (p_.box_rows >= 8) {
      load_boxes();
    } else {
      copy_rows();
    }
  }

 private:
  __device__ void load_boxes() const {
    const TensorMap& map = loads_v_ ? p_.v : p_.k;
    prefetch_map(map);
    const int of_panel = tile_keys / p_.box_rows;
    const bool has_box = lane_ < Shape::panels * of_panel;
    const int panel = lane_ / of_panel, row = lane_ % of_panel * p_.box_rows;
    const auto box_of = [&](int tile) {
      const int key = first_key_ + min(tile, tiles_ - 1) * tile_keys + row;
      return BoxStart{panel * panel_columns, key % page_size_, head_,
                      has_box ? pages_[key / page_size_] : 0};
    };
    BoxStart next = box_of(0);  // looked up a tile before it is wanted
#pragma unroll 1
    for (int tile = 0; tile < tiles_; ++tile) {
      const BoxStart box = next;
      next = box_of(tile + 1);
      ring_.empty(tile).wait(Ring::parity(tile) ^ 1U);
      if (lane_ == 0) ring_.full(tile).arrive_expecting(Shape::tile_bytes);
      __syncwarp();
      if (!has_box) continue;
      load_box(ring_.tile(tile) + (panel * Shape::panel_bytes + row * panel_row_bytes), map, box,
               ring_.full(tile), L2Hint::evict_last);
    }
  }

  __device__ void copy_rows() const {
    constexpr int chunks = Shape::D / 8, panel_chunks = panel_columns / 8;
    const Strides& strides = loads_v_ ? p_.a.v_strides : p_.a.k_strides;
    const T* const from =
        static_cast<const T*>(loads_v_ ? p_.a.v : p_.a.k) + strides.offset(0, head_, 0);
#pragma unroll 1
    for (int tile = 0; tile < tiles_; ++tile) {
      ring_.empty(tile).wait(Ring::parity(tile) ^ 1U);
      __syncwarp();
#pragma unroll 1
      for (int i = lane_; i < tile_keys * chunks; i += 32) {
        const int row = i / chunks, chunk = i % chunks;
        const int key = first_key_ + tile * tile_keys + row;
        const T* const of_row =
            from + strides.offset(pages_[key / page_size_], 0, key % page_size_);
        AsyncCopies::copy<16>(ring_.tile(tile) + (chunk / panel_chunks * Shape::panel_bytes +
                                                  swizzled_chunk(row, chunk % panel_chunks)),
                              of_row + 8 * chunk);
      }
      AsyncCopies::commit();
      AsyncCopies::wait<0>();
      fence_async_shared();
      __syncwarp();
      if (lane_ == 0) ring_.full(tile).arrive();
    }
  }

  const PrefixParameters& p_;
  const Ring ring_;
  const std::int32_t* const pages_;
  const int page_size_, first_key_, tiles_, head_;
  const bool loads_v_;
  const int lane_;
};

}  // namespace attest
