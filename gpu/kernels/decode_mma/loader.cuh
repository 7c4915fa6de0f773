#pragma once

#include <cstdint>

#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/decode_mma/chunks.cuh"
#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/load_if.cuh"
#include "gpu/primitives/swizzled_tile.cuh"

namespace attest {

/// Starts the copies of a warp's tiles of K and V, each lane some chunks of 16 bytes. Keys that no
/// row of the unit sees are not read: their rows become zeros. So nothing past an entry's length,
/// nor a page that holds none of its keys, is ever touched.
template <typename Shape, bool is_paged>
class KeyLoader {
  using T = typename Shape::Key;
  using Tile = SwizzledTile<T, Shape::D>;
  static constexpr int chunks = Tile::chunks, rows_a_pass = 32 / chunks;
  static constexpr int passes = Shape::Bc / rows_a_pass;
  static_assert(chunks <= 32);

 public:
  template <typename Span>
  __device__ KeyLoader(const ForwardArguments& a, const DecodeSizes& sizes, const DecodeUnit& unit,
                       const Span& span)
      : by_page_(sizes.by_page), from_(span.from), to_(span.to) {
    const int batch = is_paged || a.key_starts != nullptr ? 0 : unit.entry;
    const int chunk = lane() % chunks * Tile::chunk;
    const Strides k = with_aligned_rows(a.k_strides), v = with_aligned_rows(a.v_strides);
    k_ = static_cast<const T*>(a.k) + k.offset(batch, unit.kv_head, unit.of.k_start) + chunk;
    v_ = static_cast<const T*>(a.v) + v.offset(batch, unit.kv_head, unit.of.k_start) + chunk;
    k_row_ = k.row;
    v_row_ = v.row;
    if constexpr (is_paged) {
      pages_ = a.page_table.of(unit.entry);
      k_page_ = a.k_strides.batch;
      v_page_ = a.v_strides.batch;
    }
  }

  /// Looks up the pages of the tile that fetch() will be asked for next: the table's answer takes
  /// as long as a key's.
  __device__ void look_ahead(int first_key) {
    if constexpr (is_paged) {
      const int key = first_key + lane();
      const int page = by_page_.quotient(key);
      slot_ = by_page_.remainder(key);
      page_ = load_if(lane() < Shape::Bc && is_read(key), pages_ + page, page_);
    }
  }

  /// Copies the tile of keys [first_key, first_key + Bc), which was looked up, to `tile`: K, then
  /// V. Most tiles are read whole and need no question at every row; where keys lie in the L2 cache
  /// a warp's instructions are what takes time.
  __device__ __forceinline__ void fetch(int first_key, SharedAddress tile) const {
    if (first_key >= from_ && first_key + Shape::Bc <= to_) {
      copy<true>(first_key, tile);
    } else {
      copy<false>(first_key, tile);
    }
  }

 private:
  /// A lone row's stride may be anything; addresses of rows that are not there are formed with it.
  static __device__ Strides with_aligned_rows(Strides strides) {
    if (strides.row % Tile::chunk != 0) strides.row = 0;
    return strides;
  }

  template <bool is_whole>
  __device__ __forceinline__ void copy(int first_key, SharedAddress tile) const {
    std::int64_t k_at = 0, v_at = 0;  // of key first_key + lane; contiguous: of the lane's key
    if constexpr (is_paged) {
      k_at = page_ * k_page_ + slot_ * k_row_;
      v_at = page_ * v_page_ + slot_ * v_row_;
    } else {
      const int key = first_key + lane() / chunks;
      k_at = key * k_row_;
      v_at = key * v_row_;
    }
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const int row = lane() / chunks + pass * rows_a_pass;
      const bool is_seen = is_whole || is_read(first_key + row);
      std::int64_t k_offset = k_at, v_offset = v_at;
      if constexpr (is_paged) {
        k_offset = __shfl_sync(0xffffffffU, k_at, row);
        v_offset = __shfl_sync(0xffffffffU, v_at, row);
      } else {
        k_at += rows_a_pass * k_row_;
        v_at += rows_a_pass * v_row_;
      }
      const SharedAddress k_to =
          tile + Tile::offset(row, lane() % chunks) * static_cast<int>(sizeof(T));
      const SharedAddress v_to = k_to + Shape::tile_elements * static_cast<int>(sizeof(T));
      if constexpr (is_whole) {
        AsyncCopies::copy<16>(k_to, k_ + k_offset);
        AsyncCopies::copy<16>(v_to, v_ + v_offset);
      } else {
        AsyncCopies::copy_or_zero<16>(k_to, k_ + (is_seen ? k_offset : 0), is_seen);
        AsyncCopies::copy_or_zero<16>(v_to, v_ + (is_seen ? v_offset : 0), is_seen);
      }
    }
  }

  __device__ bool is_read(int key) const {
    return key >= from_ && key < to_;
  }
  static __device__ int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }

  const T *k_, *v_;  ///< the lane's chunk of row 0 of the entry, or of slot 0 of page 0
  std::int64_t k_row_, v_row_, k_page_ = 0, v_page_ = 0;
  const std::int32_t* pages_ = nullptr;
  int page_ = 0, slot_ = 0;  ///< in the pool, of key `lane` of the tile that was looked up
  Divisor by_page_;
  int from_, to_;
};

}  // namespace attest
