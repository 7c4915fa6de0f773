#pragma once

// A tile of a matrix product by a block of 16 x 16 threads, R x R elements of it a thread, as outer
// products of vectors from shared memory. Both factors lie there with the summed dimension first,
// product_slice of its steps at a time: A and B [product_slice, tile], tile = 16 R.

#include <cstdint>

#include "gpu/primitives/head_rows.cuh"

namespace attest {

inline constexpr int product_side = 16;  ///< threads along each edge of a tile
inline constexpr int product_threads = product_side * product_side;
inline constexpr int product_slice = 16;  ///< steps of the sum in shared memory at a time

/// One edge of a tile: thread t of 16 has R of its 16 R elements, four neighbours at a time. Rows
/// of A and B are `pitch` floats apart, so that their vectors are aligned and transposed stores
/// meet in few banks.
template <int R>
struct ProductEdge {
  static constexpr int tile = product_side * R;
  static constexpr int pitch = tile + 4;

  static __device__ int index(int t, int i) { return i / 4 * product_side * 4 + t * 4 + i % 4; }
  /// The thread's elements of one row of A or B.
  static __device__ void load(const float* row, int t, float (&to)[R]) {
#pragma unroll
    for (int i = 0; i < R; i += 4) {
      const float4 v = *reinterpret_cast<const float4*>(row + index(t, i));
      to[i] = v.x, to[i + 1] = v.y, to[i + 2] = v.z, to[i + 3] = v.w;
    }
  }
};

/// to[k, row] = from[first_row + row, first_column + k], 0 past the rows or `columns`. All
/// threads of the block take part, here and below; no barrier inside.
template <int R>
__device__ void load_transposed(const RowView<const float>& from, std::int64_t first_row,
                                std::int64_t first_column, std::int64_t columns, float* to) {
  const int rows = from.existing(first_row, ProductEdge<R>::tile);
  for (int e = static_cast<int>(threadIdx.x); e < ProductEdge<R>::tile * product_slice;
       e += product_threads) {
    const int row = e / product_slice, k = e % product_slice;
    const bool exists = row < rows && first_column + k < columns;
    to[k * ProductEdge<R>::pitch + row] =
        exists ? from.row(first_row + row)[first_column + k] : 0.0F;
  }
}

/// sums += outer product of row k of A and of B for k in [0, product_slice); `masked`: row i of the
/// thread's elements only where k < seen[i].
template <int R, bool masked>
__device__ void add_products(const float* A, const float* B, const int (&seen)[R],
                             float (&sums)[R][R]) {
  const int t_row = static_cast<int>(threadIdx.x) / product_side;
  const int t_col = static_cast<int>(threadIdx.x) % product_side;
#pragma unroll
  for (int k = 0; k < product_slice; ++k) {
    float a[R], b[R];
    ProductEdge<R>::load(A + k * ProductEdge<R>::pitch, t_row, a);
    ProductEdge<R>::load(B + k * ProductEdge<R>::pitch, t_col, b);
#pragma unroll
    for (int i = 0; i < R; ++i) {
      if (masked && k >= seen[i]) continue;
#pragma unroll
      for (int j = 0; j < R; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
  }
}

/// to[row, column] = factor * sums for what exists, 16 bytes at a time where addresses allow.
template <int R>
__device__ void store_product(const RowView<float>& to, std::int64_t first_row,
                              std::int64_t first_column, std::int64_t columns, float factor,
                              const float (&sums)[R][R]) {
  const int t_row = static_cast<int>(threadIdx.x) / product_side;
  const int t_col = static_cast<int>(threadIdx.x) % product_side;
  const int rows = to.existing(first_row, ProductEdge<R>::tile);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    const int row = ProductEdge<R>::index(t_row, i);
    if (row >= rows) continue;
#pragma unroll
    for (int j = 0; j < R; j += 4) {
      const std::int64_t column = first_column + ProductEdge<R>::index(t_col, j);
      float* const at = to.row(first_row + row) + column;
      const float v[4] = {factor * sums[i][j], factor * sums[i][j + 1], factor * sums[i][j + 2],
                          factor * sums[i][j + 3]};
      if (column + 4 <= columns && reinterpret_cast<std::uintptr_t>(at) % sizeof(float4) == 0) {
        *reinterpret_cast<float4*>(at) = make_float4(v[0], v[1], v[2], v[3]);
      } else {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          if (column + c < columns) at[c] = v[c];
        }
      }
    }
  }
}

/// Floats of shared memory for A and B.
constexpr std::int64_t product_shared_floats(std::int64_t tile) {
  return 2 * product_slice * (tile + 4);
}

}  // namespace attest
