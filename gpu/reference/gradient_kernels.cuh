#pragma once

// The kernels of backward_reference.cu, in the order of their launches. Included there and nowhere
// else.

#include <cmath>
#include <cstdint>

#include "gpu/primitives/launch.cuh"
#include "gpu/reference/gradient_arrays.cuh"

namespace attest {
// The file is compiled twice into one program, for the GPU and for the executor.
namespace {

constexpr int element_threads = 128;

/// A thread a row: delta and its absolute sum.
__global__ void form_deltas(GradientArrays a) {
  const std::int64_t row = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (row >= a.problem.rows()) return;
  const std::int64_t columns = a.problem.output_dim();
  double sum = 0, absolute = 0;
  for (std::int64_t c = row * columns; c < (row + 1) * columns; ++c) {
    const double product = static_cast<double>(a.d_o[c]) * static_cast<double>(a.o[c]);
    sum += product;
    absolute += fabs(product);
  }
  if (a.d_lse != nullptr) {
    sum -= static_cast<double>(a.d_lse[row]);
    absolute += fabs(static_cast<double>(a.d_lse[row]));
  }
  a.delta[row] = sum;
  a.absolute_delta[row] = absolute;
}

/// A thread an element of the sums.
__global__ void clear_sums(SumArrays sums) {
  const std::int64_t e = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (e >= sums.size()) return;
  sums.values[e] = sums.sizes[e] = sums.errors[e] = sums.own_errors[e] = 0;
}

/// A block a tile [64 queries, 64 keys] of Q K^T or dO V^T: `m` has those of all heads. What is not
/// finite reaches its own pairs only.
__global__ void __launch_bounds__(tile_threads)
    form_products(GradientArrays a, Chunk chunk, RowsAndKeys m) {
  const HeadRows c = take_part(a, chunk);
  m.rows += row_of(a.problem, c) * m.dim;
  m.keys += kv_head(a.problem, c) * m.key_count * m.dim;
  m.products += c.scratch_row * m.pitch, m.absolute += c.scratch_row * m.pitch;
  const std::int64_t first_key = std::int64_t{blockIdx.x} * tile_columns;
  if (!keys_of_tile(a.problem, c, blockIdx.y).holds(first_key)) return;
  multiply_tile(m, std::int64_t{blockIdx.y} * tile_rows, first_key,
                [](float x) { return static_cast<double>(x); });
}

/// A block a tile: the terms of its pairs, 0 where the row does not see the key.
__global__ void __launch_bounds__(element_threads) form_terms(GradientArrays a, Chunk chunk) {
  const Problem& p = a.problem;
  const HeadRows c = take_part(a, chunk);
  const std::int64_t first_key = std::int64_t{blockIdx.x} * tile_columns;
  if (!keys_of_tile(p, c, blockIdx.y).holds(first_key)) return;
  for (int e = static_cast<int>(threadIdx.x); e < tile_rows * tile_columns; e += element_threads) {
    const std::int64_t row = std::int64_t{blockIdx.y} * tile_rows + e / tile_columns;
    const std::int64_t key = first_key + e % tile_columns;
    if (row >= c.count || key >= p.key_len) continue;
    const std::int64_t at = row * a.pitch + key;
    PairTerms terms{};
    if (p.sees(c.batch, c.first + row, key)) {
      GradientPair<double> pair{};
      pair.x = a.dscores.sizes[at];
      pair.absolute_x = a.dscores.errors[at];
      pair.g = a.weights.sizes[at];
      pair.absolute_g = a.weights.errors[at];
      const std::int64_t saved = row_of(p, c) + row;
      const SavedRow<double> of_row{static_cast<double>(a.lse[saved]), a.delta[saved],
                                    a.absolute_delta[saved]};
      terms = pair_terms(a.kernel, a.own, pair_of_products(p, pair, of_row));
    }
    a.dscores.sizes[at] = terms.dscore.size;
    a.dscores.errors[at] = terms.dscore.error;
    a.dscores.own_errors[at] = terms.dscore.own_error;
    a.weights.sizes[at] = terms.weight.size;
    a.weights.errors[at] = terms.weight.error;
    a.weights.own_errors[at] = terms.weight.own_error;
  }
}

/// Operands of one launch, which adds up terms times rows of an input.
struct Addition {
  const double* terms;   ///< [heads, chunk rows, pitch]
  const float* factors;  ///< an input, all of it
  double* sums;          ///< [heads, rows, columns]
  std::int64_t rows, columns;
};
enum class Products { as_they_are, absolute };

/// A block's own head of it; factors begin with the head's keys, or with the rows of the chunk.
__device__ Addition part_of(const Addition& add, const GradientArrays& a, const HeadRows& c,
                            bool is_over_keys) {
  const Problem& p = a.problem;
  const std::int64_t factor = is_over_keys ? kv_head(p, c) * p.key_len : row_of(p, c);
  const double* const terms = add.terms == nullptr ? nullptr : add.terms + c.scratch_row * a.pitch;
  return {terms, add.factors + factor * add.columns, add.sums + blockIdx.z * add.rows * add.columns,
          add.rows, add.columns};
}

/// A thread's share of a tile of sums, which go on from what memory holds.
template <Products products>
class AddedTile {
 public:
  __device__ AddedTile(const Addition& add, std::int64_t first_row, std::int64_t first_column)
      : rows(static_cast<int>(min(add.rows - first_row, std::int64_t{tile_rows}))),
        columns(static_cast<int>(min(add.columns - first_column, std::int64_t{tile_columns}))),
        to_(add.sums + first_row * add.columns + first_column),
        pitch_(add.columns) {
    for_each([&](double& in_memory, double& sum) { sum = in_memory; });
  }
  __device__ void step(double term, double factor, int i, int j) {
    if (products == Products::absolute) term = fabs(term), factor = fabs(factor);
    sums_[i][j] = fma(term, factor, sums_[i][j]);
  }
  __device__ void store() {
    for_each([&](double& in_memory, double& sum) { in_memory = sum; });
  }

  const int rows, columns;  ///< of the tile that exist

 private:
  template <typename Visit>
  __device__ void for_each(const Visit& visit) {
    const ThreadTile mine;
#pragma unroll
    for (int i = 0; i < thread_rows; ++i) {
#pragma unroll
      for (int j = 0; j < thread_columns; ++j) {
        if (mine.row(i) >= rows || mine.column(j) >= columns) continue;
        visit(to_[mine.row(i) * pitch_ + mine.column(j)], sums_[i][j]);
      }
    }
  }

  double* const to_;
  const std::int64_t pitch_;
  double sums_[thread_rows][thread_columns] = {};
};

/// A block a tile [64 queries, 64 columns] of dQ: keys in ascending order. Factors that are not
/// finite count as 0 here, and below.
template <Products products>
__global__ void __launch_bounds__(tile_threads)
    add_over_keys(GradientArrays a, Chunk chunk, Addition all) {
  const HeadRows c = rows_of_block(a.problem, chunk);
  const Addition add = part_of(all, a, c, true);
  const std::int64_t first_row = std::int64_t{blockIdx.x} * tile_rows;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * tile_columns;
  const KeyRange keys = keys_of_tile(a.problem, c, blockIdx.x);
  const double* const terms = add.terms + first_row * a.pitch + keys.begin;
  const float* const factors = add.factors + keys.begin * add.columns + first_column;
  AddedTile<products> tile(add, first_row, first_column);
  for_each_pair<false>(
      keys.size(),
      [&](int row, std::int64_t key) { return row < tile.rows ? terms[row * a.pitch + key] : 0.0; },
      [&](std::int64_t key, int column) {
        return column < tile.columns ? finite_or_zero(factors[key * add.columns + column]) : 0.0;
      },
      [&](double x, double y, int i, int j) { tile.step(x, y, i, j); });
  tile.store();
}

/// A block a tile [64 keys, 64 columns] of dK or dV: rows of the chunk in ascending order.
template <Products products>
__global__ void __launch_bounds__(tile_threads)
    add_over_rows(GradientArrays a, Chunk chunk, Addition all) {
  const HeadRows c = rows_of_block(a.problem, chunk);
  const Addition add = part_of(all, a, c, false);
  const std::int64_t first_key = std::int64_t{blockIdx.x} * tile_rows;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * tile_columns;
  AddedTile<products> tile(add, first_key, first_column);
  for (std::int64_t first = 0; first < c.count; first += tile_rows) {
    if (!keys_of_tile(a.problem, c, first / tile_rows).holds(first_key)) continue;
    const double* const terms = add.terms + first * a.pitch + first_key;
    const float* const factors = add.factors + first * add.columns + first_column;
    for_each_pair<false, true>(
        min(c.count - first, std::int64_t{tile_rows}),
        [&](int key, std::int64_t row) {
          return key < tile.rows ? terms[row * a.pitch + key] : 0.0;
        },
        [&](std::int64_t row, int column) {
          return column < tile.columns ? finite_or_zero(factors[row * add.columns + column]) : 0.0;
        },
        [&](double x, double y, int i, int j) { tile.step(x, y, i, j); });
  }
  tile.store();
}

/// A thread an element of dQ: NaN where a key that the row sees is not finite in that column.
__global__ void spoil_over_keys(GradientArrays a, Chunk chunk, Addition all) {
  const HeadRows c = rows_of_block(a.problem, chunk);
  const Addition add = part_of(all, a, c, true);
  const std::int64_t e = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (e >= add.rows * add.columns) return;
  const std::int64_t query = c.first + e / add.columns;
  const KeyRange keys = a.problem.visible_range(c.batch, query);
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    const bool is_finite = std::isfinite(add.factors[key * add.columns + e % add.columns]);
    if (!is_finite && a.problem.sees(c.batch, query, key)) {
      add.sums[e] = static_cast<double>(NAN);
      return;
    }
  }
}

/// A thread an element of dK or dV: NaN where a row of the chunk that sees the key is not finite in
/// that column.
__global__ void spoil_over_rows(GradientArrays a, Chunk chunk, Addition all) {
  const HeadRows c = rows_of_block(a.problem, chunk);
  const Addition add = part_of(all, a, c, false);
  const std::int64_t e = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (e >= add.rows * add.columns) return;
  for (std::int64_t row = 0; row < c.count; ++row) {
    const bool is_finite = std::isfinite(add.factors[row * add.columns + e % add.columns]);
    if (!is_finite && a.problem.sees(c.batch, c.first + row, e / add.columns)) {
      add.sums[e] = static_cast<double>(NAN);
      return;
    }
  }
}

/// A thread an element. The first of a head's sums is element `first` of the output, that of the
/// next head's lies `step` behind it.
__global__ void finish_elements(GradientArrays a, SumArrays sums, GradientSumBound of,
                                OutputArrays to, std::int64_t first, std::int64_t step) {
  const std::int64_t element = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (element >= sums.of_head()) return;
  const std::int64_t e = blockIdx.z * sums.of_head() + element;
  const std::int64_t at = first + blockIdx.z * step + element;
  // An infinite error of what a 0 multiplies left NaN, of which sum_error() makes infinity, too.
  const double errors = sums.errors[e], own = sums.own_errors[e];
  const GradientElement gradient =
      gradient_element(a.kernel, a.own, of,
                       {sums.values[e], errors, sums.sizes[e] + errors, own, sums.sizes[e] + own});
  to.value[at] = gradient.value;
  to.bound[at] = gradient.bound;
  to.own_error[at] = gradient.own_error;
}

}  // namespace
}  // namespace attest
