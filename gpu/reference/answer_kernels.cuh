#pragma once

// The kernels of reference.cu, in the order of their launches. Included there and nowhere else.

#include <cmath>
#include <cstdint>

#include "gpu/primitives/launch.cuh"
#include "gpu/reference/answer_arrays.cuh"
#include "gpu/reference/pair_products.cuh"
#include "gpu/reference/weigh_row.cuh"

namespace attest {
// The file is compiled twice into one program, for the GPU and for the executor.
namespace {

/// A block a kv head: where K stops being finite.
__global__ void scan_keys(Arrays a) {
  double* const scratch = dynamic_shared<double>();
  const Problem& p = a.problem;
  const std::int64_t elements = p.key_len * p.head_dim;
  const float* const k = a.k + blockIdx.x * elements;
  double first_bad = static_cast<double>(p.key_len);
  for (std::int64_t e = threadIdx.x; e < elements; e += weigh_threads) {
    if (!std::isfinite(k[e])) first_bad = fmin(first_bad, static_cast<double>(e / p.head_dim));
  }
  first_bad = -over_block(-first_bad, LargerOf{}, scratch);
  if (threadIdx.x > 0) return;
  a.bad_keys[blockIdx.x] = static_cast<std::int64_t>(first_bad);
}

/// A thread a column of V: ranges of the first n values for every n of the table.
__global__ void scan_values(Arrays a) {
  const Problem& p = a.problem;
  const std::int64_t column = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (column >= p.batch * p.kv_heads * p.head_dim) return;
  const std::int64_t head = column / p.head_dim, d = column % p.head_dim;
  const float* const v = a.v + head * p.key_len * p.head_dim + d;
  ValueRange range{HUGE_VAL, -HUGE_VAL, 0};
  std::int64_t first_bad = p.key_len;
  for (std::int64_t j = 0; j < p.key_len; ++j) {
    const float value = v[j * p.head_dim];
    if (!std::isfinite(value)) first_bad = min(first_bad, j);
    const double x = finite_or_zero(value);
    range.lowest = fmin(range.lowest, x);
    range.highest = fmax(range.highest, x);
    range.abs_sum += fabs(x);
    const std::int64_t row = j + 1 - a.least_visible;
    if (row >= 0 && row < a.table_rows) {
      a.ranges[(head * a.table_rows + row) * p.head_dim + d] = range;
    }
  }
  a.bad_values[column] = first_bad;
}

/// A block a tile [64 queries, 64 keys]. Tiles that no row sees are left as they are.
__global__ void __launch_bounds__(tile_threads) form_scores(Arrays a, Chunk chunk) {
  const Problem& p = a.problem;
  const HeadRows c = take_part(a, chunk);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * tile_rows;
  const std::int64_t first_key = std::int64_t{blockIdx.x} * tile_columns;
  if (first_key >= keys_of_tile(p, c, first_row)) return;
  multiply_tile({a.q + row_of(p, c) * p.head_dim, a.k + kv_head(p, c) * p.key_len * p.head_dim,
                 c.count, p.key_len, p.head_dim, a.dots, a.absolute, a.pitch},
                first_row, first_key, [](float x) { return finite_or_zero(x); });
}

/// A block a row.
__global__ void __launch_bounds__(weigh_threads, 3) weigh_rows(Arrays a, Chunk chunk) {
  const Problem& p = a.problem;
  const HeadRows c = take_part(a, chunk);
  const std::int64_t row = blockIdx.x, query = c.first + row;
  const RowOfScores scores{a.dots + row * a.pitch, a.absolute + row * a.pitch,
                           p.visible_keys(query), keys_of_tile(p, c, row / tile_rows * tile_rows),
                           static_cast<double>(p.scale)};
  if (scores.visible == 0) {
    BlockWeigher::clear_hidden(scores);
    return;
  }
  double* const scratch = dynamic_shared<double>();
  const float* const q = a.q + (row_of(p, c) + row) * p.head_dim;
  double is_bad = 0;
  for (std::int64_t d = threadIdx.x; d < p.head_dim; d += weigh_threads) {
    if (!std::isfinite(q[d])) is_bad = 1;
  }
  is_bad = over_block(is_bad, LargerOf{}, scratch);
  const Constants constants = a.constants[scores.visible - a.least_visible];
  BlockWeigher weigher(scores, scratch);
  const RowErrors errors = weigher.weigh(constants.kernel, constants.own, a.scale_is_folded);
  if (threadIdx.x > 0) return;
  a.rows[row] = errors;
  a.is_bad_row[row] = is_bad > 0 || scores.visible > a.bad_keys[kv_head(p, c)];
}

/// A block a tile [64 queries, 64 columns]: O and sum p|v|.
__global__ void __launch_bounds__(tile_threads) weigh_values(Arrays a, Chunk chunk) {
  const Problem& p = a.problem;
  const HeadRows c = take_part(a, chunk);
  const std::int64_t first_row = std::int64_t{blockIdx.x} * tile_rows;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * tile_columns;
  const float* const v = a.v + kv_head(p, c) * p.key_len * p.head_dim;
  TwoSums sums;
  for_each_pair<false>(
      keys_of_tile(p, c, first_row),
      [&](int row, std::int64_t key) {
        const std::int64_t r = first_row + row;
        return r < c.count ? a.dots[r * a.pitch + key] : 0.0;
      },
      [&](std::int64_t key, int column) {
        const std::int64_t d = first_column + column;
        return d < p.head_dim ? finite_or_zero(v[key * p.head_dim + d]) : 0.0;
      },
      [&](double x, double y, int i, int j) {
        sums.first[i][j] = fma(x, y, sums.first[i][j]);
        sums.second[i][j] = fma(x, fabs(y), sums.second[i][j]);
      });
  const ThreadTile mine;
  for (int i = 0; i < thread_rows; ++i) {
    for (int j = 0; j < thread_columns; ++j) {
      const std::int64_t row = first_row + mine.row(i), d = first_column + mine.column(j);
      if (row >= c.count || d >= p.head_dim) continue;
      a.sums_o[row * p.head_dim + d] = sums.first[i][j];
      a.sums_w[row * p.head_dim + d] = sums.second[i][j];
    }
  }
}

/// Sums phi |v - O| over the tiles of a chunk.
__global__ void __launch_bounds__(tile_threads) sum_deviations_of(Arrays a, Chunk chunk) {
  const Problem& p = a.problem;
  const HeadRows c = take_part(a, chunk);
  const std::int64_t first_row = std::int64_t{blockIdx.x} * tile_rows;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * tile_columns;
  const float* const v = a.v + kv_head(p, c) * p.key_len * p.head_dim;
  const ThreadTile mine;
  TwoSums sums;  // second: O
  for (int i = 0; i < thread_rows; ++i) {
    for (int j = 0; j < thread_columns; ++j) {
      const std::int64_t row = first_row + mine.row(i), d = first_column + mine.column(j);
      if (row < c.count && d < p.head_dim) sums.second[i][j] = a.sums_o[row * p.head_dim + d];
    }
  }
  for_each_pair<false>(
      keys_of_tile(p, c, first_row),
      [&](int row, std::int64_t key) {
        const std::int64_t r = first_row + row;
        return r < c.count ? a.absolute[r * a.pitch + key] : 0.0;
      },
      [&](std::int64_t key, int column) {
        const std::int64_t d = first_column + column;
        return d < p.head_dim ? finite_or_zero(v[key * p.head_dim + d]) : 0.0;
      },
      [&](double x, double y, int i, int j) {
        sums.first[i][j] = fma(x, fabs(y - sums.second[i][j]), sums.first[i][j]);
      });
  for (int i = 0; i < thread_rows; ++i) {
    for (int j = 0; j < thread_columns; ++j) {
      const std::int64_t row = first_row + mine.row(i), d = first_column + mine.column(j);
      if (row < c.count && d < p.head_dim) a.sums_e[row * p.head_dim + d] = sums.first[i][j];
    }
  }
}

/// A block a row.
__global__ void finish_rows(Arrays a, Chunk chunk) {
  const Problem& p = a.problem;
  const HeadRows c = take_part(a, chunk);
  const std::int64_t row = blockIdx.x, query = c.first + row;
  const std::int64_t at = row_of(p, c) + row;
  const std::int64_t visible = p.visible_keys(query);
  const bool is_empty = visible == 0, is_bad = !is_empty && a.is_bad_row[row];
  const double special = is_bad ? static_cast<double>(NAN) : 0.0;
  if (is_empty || is_bad) {
    for (std::int64_t d = threadIdx.x; d < p.head_dim; d += blockDim.x) {
      a.o[at * p.head_dim + d] = special;
      a.o_bound[at * p.head_dim + d] = special;
      a.o_own[at * p.head_dim + d] = special;
    }
    if (threadIdx.x > 0) return;
    a.lse[at] = is_empty ? -HUGE_VAL : special;
    a.lse_bound[at] = special;
    a.lse_own[at] = special;
    return;
  }
  const std::int64_t table_row = visible - a.least_visible, head = kv_head(p, c);
  const Constants& constants = a.constants[table_row];
  const RowErrors& errors = a.rows[row];
  for (std::int64_t d = threadIdx.x; d < p.head_dim; d += blockDim.x) {
    const double o = a.sums_o[row * p.head_dim + d];
    const ValueRange& values = a.ranges[(head * a.table_rows + table_row) * p.head_dim + d];
    const ElementErrors element =
        element_errors(constants.kernel, constants.own, errors, a.sums_e[row * p.head_dim + d],
                       fmax(values.highest - o, o - values.lowest),
                       {o, a.sums_w[row * p.head_dim + d], 0, values.abs_sum,
                        fmax(fabs(values.lowest), fabs(values.highest))});
    const bool is_bad_value = visible > a.bad_values[head * p.head_dim + d];
    a.o[at * p.head_dim + d] = is_bad_value ? static_cast<double>(NAN) : o;
    a.o_bound[at * p.head_dim + d] = is_bad_value ? static_cast<double>(NAN) : element.bound;
    a.o_own[at * p.head_dim + d] = is_bad_value ? static_cast<double>(NAN) : element.own;
  }
  if (threadIdx.x > 0) return;
  const double own = lse_error(constants.own, errors.own, errors.lse);
  const double bound = errors.is_vacuous ? static_cast<double>(HUGE_VAL)
                                         : lse_error(constants.kernel, errors.kernel, errors.lse);
  a.lse[at] = errors.lse;
  a.lse_bound[at] = bound + own;
  a.lse_own[at] = own;
}

}  // namespace
}  // namespace attest
