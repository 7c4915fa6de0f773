#pragma once

// Sums of what launches gave of the same rows: dQ of a rank over the ranks whose keys it met, dK
// and dV of a rank over the ranks that met its keys.
//
// Idea
//   A thread has eight columns of a row: one load of 16 bytes a part, and additions in fp32 in the
//   order of the parts.
// Rows of no part are 0: queries that see no key, keys that no query sees.
#include <cstdint>

#include "gpu/kernels/ring/eight_columns.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// Result of one launch, of some of the rows.
struct RingAddend {
  std::int64_t first_row = 0, rows = 0;  ///< that it has something of
  std::int64_t rows_in_memory = 0;       ///< of a head
  const void* values = nullptr;  ///< [heads, rows_in_memory, pitch]; row 0 is the rank's row 0
};

struct RingSum {
  RingAddend parts[most_ring_parts] = {};
  int count = 0;
  std::int64_t heads = 0, rows = 0;  ///< heads of all entries
  std::int64_t pitch = 0;            ///< from row to row: a multiple of 8
  std::int64_t columns = 0;          ///< of a row; there are none behind them
  void* to = nullptr;                ///< [heads, rows, pitch]
};

/// Adds up the thread's eight columns of a row of a head.
template <typename T>
__device__ void sum_row(const RingSum& s, std::int64_t head, std::int64_t row) {
  const std::int64_t column = std::int64_t{threadIdx.x} * row_columns;
  float sums[row_columns] = {};
  for (int p = 0; p < s.count; ++p) {
    const RingAddend& part = s.parts[p];
    if (row < part.first_row || row >= part.first_row + part.rows) continue;
    EightColumns<T> values;
    values.load(
        static_cast<const T*>(part.values) + (head * part.rows_in_memory + row) * s.pitch + column,
        s.columns - column);
#pragma unroll
    for (int c = 0; c < row_columns; ++c) sums[c] += to_float(values[c]);
  }
  EightColumns<T> result;
#pragma unroll
  for (int c = 0; c < row_columns; ++c) result[c] = from_float<T>(sums[c]);
  result.store(static_cast<T*>(s.to) + (head * s.rows + row) * s.pitch + column,
               s.columns - column);
}

template <Executor home, typename T>
__global__ void ring_sum(const __grid_constant__ RingSum s) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= s.rows) return;
  for (std::int64_t head = blockIdx.y; head < s.heads; head += gridDim.y) sum_row<T>(s, head, row);
}

template <Executor home>
void add_parts(const RingSum& s, ElementType type, Device& device) {
  if (s.heads == 0 || s.rows == 0) return;
  const RowThreads threads(s.heads, s.rows, s.pitch);
  with_sixteen_bits(type, [&]<typename T>(std::type_identity<T>) {
    launch(ring_sum<home, T>, threads.grid, threads.block, 0, device, s);
  });
}

}  // namespace attest
