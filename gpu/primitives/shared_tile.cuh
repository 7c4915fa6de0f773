#pragma once

#include <cstdint>

#include "gpu/primitives/head_rows.cuh"

namespace attest {

/// A tile in shared memory: rows of floats, `stride` apart. A stride longer than a row is padding.
struct SharedTile {
  float* first = nullptr;
  int stride = 0;

  __device__ float* row(int r) const { return first + r * stride; }
  __device__ SharedTile from(int r, int column = 0) const { return {row(r) + column, stride}; }
};

/// A view of the rows from a later column on.
inline __device__ RowView<const float> columns_from(const RowView<const float>& rows, int column) {
  return {rows.first + column, rows.stride, rows.count};
}

/// Calls visit(row, column) for every element of [rows, columns], shared among the threads of the
/// block, consecutive threads taking consecutive columns. Divides once and not for each element.
template <typename Visit>
__device__ __forceinline__ void for_each_element(int rows, int columns, const Visit& visit) {
  const int threads = static_cast<int>(blockDim.x);
  const int row_step = threads / columns;
  const int column_step = threads % columns;
  int row = static_cast<int>(threadIdx.x) / columns;
  int column = static_cast<int>(threadIdx.x) % columns;
  while (row < rows) {
    visit(row, column);
    row += row_step;
    column += column_step;
    if (column >= columns) {
      column -= columns;
      ++row;
    }
  }
}

/// Copies rows [begin, begin + rows) of `from`, the first `columns` of each, to `tile`. Rows past
/// the tensor, and columns up to `filled`, become 0: a register tile reads them beside others. All
/// threads of the block take part; no barrier inside.
__device__ __forceinline__ void load_zeroed(const RowView<const float>& from, std::int64_t begin,
                                            int rows, int columns, int filled,
                                            const SharedTile& tile) {
  const int existing = from.existing(begin, rows);
  for_each_element(rows, filled, [&](int r, int c) {
    tile.row(r)[c] = r < existing && c < columns ? from.row(begin + r)[c] : 0.0F;
  });
}

/// Writes zeros to [rows, columns] of `tile`; `columns` may be 0.
inline __device__ void fill_zeros(const SharedTile& tile, int rows, int columns) {
  if (columns == 0) return;
  for_each_element(rows, columns, [&](int r, int c) { tile.row(r)[c] = 0.0F; });
}

/// True if every row starts at a multiple of 16 bytes and is a whole number of them.
inline __device__ bool rows_are_vectors(const RowView<const float>& rows, int columns) {
  return reinterpret_cast<std::uintptr_t>(rows.first) % sizeof(float4) == 0 &&
         rows.stride % 4 == 0 && columns % 4 == 0;
}

/// Does what load_zeroed() does, but reads global memory in 128-bit loads, which rows_are_vectors()
/// allows and `filled`, a multiple of 4, too. Shared memory is written in scalars: padded rows do
/// not start at multiples of 16 bytes.
__device__ __forceinline__ void load_zeroed_vectors(const RowView<const float>& from,
                                                    std::int64_t begin, int rows, int columns,
                                                    int filled, const SharedTile& tile) {
  const int existing = from.existing(begin, rows);
  for_each_element(rows, filled / 4, [&](int r, int vector) {
    const int c = 4 * vector;
    float4 four = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (r < existing && c < columns) {
      four = *reinterpret_cast<const float4*>(from.row(begin + r) + c);
    }
    float* const to = tile.row(r) + c;
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
  });
}

/// load_zeroed() by the widest loads that the rows allow. Inlined, so that a finding or a counter
/// names the kernel's line.
__device__ __forceinline__ void load_widest(const RowView<const float>& from, std::int64_t begin,
                                            int rows, int columns, int filled,
                                            const SharedTile& tile) {
  if (rows_are_vectors(from, columns) && filled % 4 == 0) {
    load_zeroed_vectors(from, begin, rows, columns, filled, tile);
  } else {
    load_zeroed(from, begin, rows, columns, filled, tile);
  }
}

}  // namespace attest
