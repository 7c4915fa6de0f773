#pragma once

#include <cstdint>

#include "gpu/primitives/head_rows.cuh"

namespace attest {

/// Copies the existing ones of rows [begin, begin + rows) into the unpadded tile [rows, columns].
/// All threads of the block take part, and consecutive threads take consecutive elements, so that a
/// warp reads whole sectors. Rows past the tensor are left as they are; the caller never reads
/// them. No barrier inside.
inline __device__ void load_tile(const RowView<const float>& from, std::int64_t begin, int rows,
                                 int columns, float* tile) {
  const int elements = from.existing(begin, rows) * columns;
  for (int e = static_cast<int>(threadIdx.x); e < elements; e += static_cast<int>(blockDim.x)) {
    tile[e] = from.row(begin + e / columns)[e % columns];
  }
}

/// Stores a tile as load_tile() loads one: a thread stores the elements that it would load from the
/// same place.
inline __device__ void store_tile(const float* tile, const RowView<float>& to, std::int64_t begin,
                                  int rows, int columns) {
  const int elements = to.existing(begin, rows) * columns;
  for (int e = static_cast<int>(threadIdx.x); e < elements; e += static_cast<int>(blockDim.x)) {
    to.row(begin + e / columns)[e % columns] = tile[e];
  }
}

/// Writes `value` to every element of every row. All threads of the block take part; no barrier
/// inside.
inline __device__ void fill_rows(const RowView<float>& to, int columns, float value) {
  const std::int64_t elements = to.count * columns;
  for (std::int64_t e = threadIdx.x; e < elements; e += blockDim.x) {
    to.row(e / columns)[e % columns] = value;
  }
}

}  // namespace attest
