#pragma once

#include <cstdint>

#include "gpu/primitives/launch.cuh"

namespace attest {

// Sums over one index of pairs (x, y), in double, two sums at a time. A thread keeps 8 rows x 4
// columns of both in registers: 64 sums for 12 values read from shared memory at each step, so the
// FP64 units are the limit. Elements outside the matrices count as 0.

inline constexpr int tile_rows = 64, tile_columns = 64, tile_depth = 16;
inline constexpr int tile_threads = 128;
inline constexpr int thread_rows = 8, thread_columns = 4;
/// Elements of the two tiles that a thread loads.
inline constexpr int x_loads = tile_rows * tile_depth / tile_threads;
inline constexpr int y_loads = tile_columns * tile_depth / tile_threads;
/// One double more than a tile's rows: threads that store a column of the tile hit different banks.
inline constexpr int row_pitch = tile_rows + 1, column_pitch = tile_columns + 1;
inline constexpr std::size_t tile_shared_bytes =
    sizeof(double) * tile_depth * (row_pitch + column_pitch);

/// Rows and columns of the result that this thread holds.
struct ThreadTile {
  int first_row, first_column;
  __device__ ThreadTile()
      : first_row(static_cast<int>(threadIdx.x) / 16 * thread_rows),
        first_column(static_cast<int>(threadIdx.x) % 16) {}
  __device__ int row(int i) const { return first_row + i; }
  /// Neighbouring threads hold neighbouring columns.
  __device__ int column(int j) const { return first_column + 16 * j; }
};

/// step(x, y, i, j) for every k in [0, depth), in ascending order. x(row, k) and y(k, column) load
/// from global memory and give 0 outside their matrices. `y_is_transposed`: consecutive k are
/// neighbours in memory, not consecutive columns; `x_is_transposed`: consecutive rows are, not
/// consecutive k. All threads of the block take part.
///
/// Barriers: (1) all have read the previous tiles; (2) the new tiles are complete.
template <bool y_is_transposed, bool x_is_transposed = false, typename X, typename Y, typename Step>
__device__ void for_each_pair(std::int64_t depth, const X& x, const Y& y, const Step& step) {
  double* const xs = dynamic_shared<double>();  // [depth][rows]
  double* const ys = xs + tile_depth * row_pitch;
  const ThreadTile mine;
  const int t = static_cast<int>(threadIdx.x);
  const auto x_depth = [](int e) { return x_is_transposed ? e / tile_rows : e % tile_depth; };
  const auto x_row = [](int e) { return x_is_transposed ? e % tile_rows : e / tile_depth; };
  const auto y_depth = [](int e) { return y_is_transposed ? e % tile_depth : e / tile_columns; };
  const auto y_column = [](int e) { return y_is_transposed ? e / tile_depth : e % tile_columns; };
  for (std::int64_t first = 0; first < depth; first += tile_depth) {
    // All loads are under way before the first is waited for: one at a time, their latency would be
    // four times the arithmetic.
    double new_x[x_loads], new_y[y_loads];
#pragma unroll
    for (int n = 0; n < x_loads; ++n) {
      const int e = t + n * tile_threads, k = x_depth(e);
      new_x[n] = first + k < depth ? x(x_row(e), first + k) : 0.0;
    }
#pragma unroll
    for (int n = 0; n < y_loads; ++n) {
      const int e = t + n * tile_threads, k = y_depth(e);
      new_y[n] = first + k < depth ? y(first + k, y_column(e)) : 0.0;
    }
    __syncthreads();  // (1)
#pragma unroll
    for (int n = 0; n < x_loads; ++n) {
      const int e = t + n * tile_threads;
      xs[x_depth(e) * row_pitch + x_row(e)] = new_x[n];
    }
#pragma unroll
    for (int n = 0; n < y_loads; ++n) {
      const int e = t + n * tile_threads;
      ys[y_depth(e) * column_pitch + y_column(e)] = new_y[n];
    }
    __syncthreads();  // (2)
#pragma unroll 4
    for (int k = 0; k < tile_depth; ++k) {
      double xk[thread_rows], yk[thread_columns];
#pragma unroll
      for (int i = 0; i < thread_rows; ++i) xk[i] = xs[k * row_pitch + mine.row(i)];
#pragma unroll
      for (int j = 0; j < thread_columns; ++j) yk[j] = ys[k * column_pitch + mine.column(j)];
#pragma unroll
      for (int i = 0; i < thread_rows; ++i) {
#pragma unroll
        for (int j = 0; j < thread_columns; ++j) step(xk[i], yk[j], i, j);
      }
    }
  }
}

/// Two sums for each of a thread's elements.
struct TwoSums {
  double first[thread_rows][thread_columns] = {}, second[thread_rows][thread_columns] = {};
};

/// x.y and sum |x y| of every row of a tile and every key of one, each of `dim` columns.
struct RowsAndKeys {
  const float *rows, *keys;  ///< contiguous
  std::int64_t row_count, key_count, dim;
  double *products, *absolute;  ///< [row_count, pitch]
  std::int64_t pitch;
};
/// `load` gives a double for an element. All threads of the block take part.
template <typename Load>
__device__ void multiply_tile(const RowsAndKeys& m, std::int64_t first_row, std::int64_t first_key,
                              const Load& load) {
  TwoSums sums;
  for_each_pair<true>(
      m.dim,
      [&](int row, std::int64_t d) {
        const std::int64_t r = first_row + row;
        return r < m.row_count ? load(m.rows[r * m.dim + d]) : 0.0;
      },
      [&](std::int64_t d, int column) {
        const std::int64_t key = first_key + column;
        return key < m.key_count ? load(m.keys[key * m.dim + d]) : 0.0;
      },
      [&](double x, double y, int i, int j) {
        sums.first[i][j] = fma(x, y, sums.first[i][j]);
        sums.second[i][j] = fma(fabs(x), fabs(y), sums.second[i][j]);
      });
  const ThreadTile mine;
  for (int i = 0; i < thread_rows; ++i) {
    for (int j = 0; j < thread_columns; ++j) {
      const std::int64_t row = first_row + mine.row(i), key = first_key + mine.column(j);
      if (row >= m.row_count || key >= m.key_count) continue;
      m.products[row * m.pitch + key] = sums.first[i][j];
      m.absolute[row * m.pitch + key] = sums.second[i][j];
    }
  }
}

}  // namespace attest
