#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/primitives/async_copy.cuh"

namespace attest {

// load_tile_async() for tiles whose sizes the compiler knows: where a tile lies within the tensor a
// copy costs one instruction, and a row's address one addition. All threads of the block take part;
// no commit inside.

/// Rows [begin, begin + rows) and dims [first_dim, first_dim + dims) of `from`, transposed, to
/// tile[dim * pitch + row]; zeros where the tensor ends, at row from.count or dim head_dim. Copies
/// of 4 bytes, 8 dims of 4 rows a warp: whole sectors, and 32 banks when the pitch is 4 past a
/// multiple of 32.
template <int rows, int dims, int threads>
__device__ void load_transposed_async(const RowView<const float>& from, std::int64_t begin,
                                      int first_dim, int head_dim, float* tile, int pitch) {
  constexpr int rows_at_once = threads / 8;
  static_assert(rows % rows_at_once == 0 && dims % 8 == 0, "whole steps");
  const int dim = static_cast<int>(threadIdx.x) % 8, row = static_cast<int>(threadIdx.x) / 8;
  const float* line = from.row(begin + row) + first_dim + dim;
  float* const target = tile + dim * pitch + row;
  if (from.count - begin >= rows && head_dim - first_dim >= dims) {
#pragma unroll
    for (int r = 0; r < rows; r += rows_at_once) {
#pragma unroll
      for (int d = 0; d < dims; d += 8) AsyncCopies::copy<4>(target + d * pitch + r, line + d);
      line += rows_at_once * from.stride;
    }
    return;
  }
  const int rows_left = from.existing(begin, rows) - row, dims_left = head_dim - first_dim - dim;
#pragma unroll 1
  for (int r = 0; r < rows; r += rows_at_once) {
#pragma unroll 1
    for (int d = 0; d < dims; d += 8) {
      const bool exists = r < rows_left && d < dims_left;
      AsyncCopies::copy_or_zero<4>(target + d * pitch + r, exists ? line + d : from.first, exists);
    }
    line += rows_at_once * from.stride;
  }
}

/// Rows [begin, begin + rows) as they lie, to tile[row * columns + column]; zeros from row
/// from.count and from column head_dim on. Copies of `bytes` bytes, which widest_copy() allows.
template <int rows, int columns, int threads, int bytes>
__device__ void load_rows_async(const RowView<const float>& from, std::int64_t begin, int head_dim,
                                float* tile) {
  constexpr int each = bytes / 4, a_row = columns / each, copies = rows * a_row;
  if constexpr (bytes == 16 && threads % a_row == 0 && copies % threads == 0) {
    if (from.count - begin >= rows && head_dim == columns) {
      const int row = static_cast<int>(threadIdx.x) / a_row;
      const int column = static_cast<int>(threadIdx.x) % a_row * each;
      const float* line = from.row(begin + row) + column;
      float* const target = tile + row * columns + column;
#pragma unroll
      for (int r = 0; r < rows; r += threads / a_row) {
        AsyncCopies::copy<bytes>(target + r * columns, line);
        line += threads / a_row * from.stride;
      }
      return;
    }
  }
  const int existing = from.existing(begin, rows);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < copies; i += threads) {
    const int row = i / a_row, column = i % a_row * each;
    const bool exists = row < existing && column < head_dim;
    AsyncCopies::copy_or_zero<bytes>(tile + row * columns + column,
                                     exists ? from.row(begin + row) + column : from.first, exists);
  }
}

/// K and V of one head as the slices that a block goes through: of each tile of Bc keys first K
/// transposed, k_dims dims at a time, [k_dims][k_pitch], then V, v_keys keys at a time,
/// [v_keys][D], for head dims up to D. One slice is in use while the next ones are on their way.
template <int Bc, int D, int k_dims, int v_keys, int k_pitch, int threads, int stages>
class KeyValueSlices {
 public:
  static constexpr int slice_floats = std::max(k_dims * k_pitch, v_keys* D);
  static constexpr int v_slices = Bc / v_keys;

  /// Tiles begin at keys 0, Bc, ... below `key_count`; `memory` holds stages * slice_floats.
  __device__ KeyValueSlices(const RowView<const float>& k, const RowView<const float>& v,
                            int head_dim, std::int64_t key_count, float* memory)
      : k_(k),
        v_(v),
        head_dim_(head_dim),
        k_slices_((head_dim + k_dims - 1) / k_dims),
        key_count_(key_count),
        memory_(memory),
        wide_v_(widest_copy(v.first, 4 * v.stride, 4 * head_dim) == 16) {
    for (int n = 1; n < stages; ++n) send();
  }

  __device__ int k_slices() const { return k_slices_; }

  /// The next slice, complete for all threads. All of them have left the one before it. One
  /// barrier.
  __device__ const float* next() {
    AsyncCopies::wait<stages - 2>();
    __syncthreads();
    send();
    const float* const slice = memory_ + taken_from_ * slice_floats;
    taken_from_ = taken_from_ + 1 == stages ? 0 : taken_from_ + 1;
    return slice;
  }

 private:
  __device__ void send() {
    if (key_ < key_count_) {
      float* const to = memory_ + sent_to_ * slice_floats;
      const std::int64_t v_key = key_ + (slice_ - k_slices_) * v_keys;
      if (slice_ < k_slices_)
        load_transposed_async<Bc, k_dims, threads>(k_, key_, slice_ * k_dims, head_dim_, to,
                                                   k_pitch);
      else if (wide_v_)
        load_rows_async<v_keys, D, threads, 16>(v_, v_key, head_dim_, to);
      else
        load_rows_async<v_keys, D, threads, 4>(v_, v_key, head_dim_, to);
      if (++slice_ == k_slices_ + v_slices) {
        slice_ = 0;
        key_ += Bc;
      }
    }
    AsyncCopies::commit();
    sent_to_ = sent_to_ + 1 == stages ? 0 : sent_to_ + 1;
  }

  RowView<const float> k_, v_;
  int head_dim_, k_slices_;
  std::int64_t key_count_, key_ = 0;  ///< key_: of the tile that is being sent
  float* memory_;
  bool wide_v_;
  int slice_ = 0;  ///< of the tile that is being sent
  int sent_to_ = 0, taken_from_ = 0;
};

}  // namespace attest
