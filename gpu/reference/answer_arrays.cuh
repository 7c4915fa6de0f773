#pragma once

// What the kernels of answer_kernels.cuh work on. Included there and nowhere else.

#include <cstdint>

#include "core/attention/problem.hpp"
#include "cpu_reference/forward/row_terms.hpp"
#include "gpu/reference/chunk.cuh"
#include "gpu/reference/pair_products.cuh"
#include "gpu/reference/weigh_row.cuh"

namespace attest {
// Compiled twice into one program, for the GPU and for the executor.
namespace {

/// Constants of rows that see one number of keys.
struct Constants {
  BoundConstants kernel, own;
};
/// Range and absolute sum of the values that a row sees, in one column.
struct ValueRange {
  double lowest, highest, abs_sum;
};

/// Everything on the device. Q, K, V are contiguous.
struct Arrays {
  Problem problem;
  const float *q, *k, *v;
  std::int64_t least_visible;  ///< tables begin at rows that see this many keys
  std::int64_t table_rows;
  const Constants* constants;  ///< [table_rows]
  ValueRange* ranges;          ///< [batch * kv_heads, table_rows, head_dim]
  std::int64_t* bad_values;    ///< first key with a value that is not finite: [heads, head_dim]
  std::int64_t* bad_keys;      ///< [heads]
  double *dots, *absolute;     ///< scratch: [chunk rows, pitch]
  std::int64_t pitch;
  RowErrors* rows;                   ///< scratch: [chunk rows]
  bool* is_bad_row;                  ///< scratch: [chunk rows]
  double *sums_o, *sums_w, *sums_e;  ///< scratch: [chunk rows, head_dim]
  double *o, *o_bound, *o_own;       ///< [rows, head_dim]
  double *lse, *lse_bound, *lse_own;
  bool scale_is_folded;
};

/// The rows of a block; scratch begins with them in `a` afterwards.
__device__ HeadRows take_part(Arrays& a, const Chunk& chunk) {
  const HeadRows c = rows_of_block(a.problem, chunk);
  a.dots += c.scratch_row * a.pitch, a.absolute += c.scratch_row * a.pitch;
  a.rows += c.scratch_row, a.is_bad_row += c.scratch_row;
  const std::int64_t elements = c.scratch_row * a.problem.head_dim;
  a.sums_o += elements, a.sums_w += elements, a.sums_e += elements;
  return c;
}
/// Keys that some row of the tile sees: those of its last row.
__device__ std::int64_t keys_of_tile(const Problem& p, const HeadRows& c, std::int64_t first_row) {
  const std::int64_t last = min(first_row + tile_rows, c.count) - 1;
  return p.visible_keys(c.first + last);
}

}  // namespace
}  // namespace attest
