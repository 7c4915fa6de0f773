#pragma once

// What the kernels of gradient_kernels.cuh work on. Included there and nowhere else.

#include <algorithm>
#include <cstdint>

#include "core/attention/problem.hpp"
#include "cpu_reference/backward/gradient_terms.hpp"
#include "gpu/reference/chunk.cuh"
#include "gpu/reference/pair_products.cuh"

namespace attest {
// Compiled twice into one program, for the GPU and for the executor.
namespace {

/// PairTerm of every pair of a chunk: [chunk rows, pitch]. Before the pairs are formed `sizes`
/// holds a product of rows, `errors` the absolute one.
struct TermArrays {
  double *sizes, *errors, *own_errors;
};

/// GradientSum of every element: [heads, rows, columns].
struct SumArrays {
  double *values, *sizes, *errors, *own_errors;
  std::int64_t heads, rows, columns;

  [[nodiscard]] constexpr std::int64_t of_head() const { return rows * columns; }
  [[nodiscard]] constexpr std::int64_t size() const { return heads * of_head(); }
};

/// Everything on the device that no launch changes by itself. Inputs are contiguous.
struct GradientArrays {
  Problem problem;
  GradientConstants kernel, own;
  const float *q, *k, *v, *o, *lse, *d_o, *d_lse;  ///< d_lse: null where dLSE is 0
  double *delta, *absolute_delta;                  ///< [rows]
  TermArrays dscores, weights;                     ///< scratch
  std::int64_t pitch;                              ///< key_len, at least 1
};

/// The rows of a block; scratch begins with them in `a` afterwards.
__device__ HeadRows take_part(GradientArrays& a, const Chunk& chunk) {
  const HeadRows c = rows_of_block(a.problem, chunk);
  const std::int64_t pairs = c.scratch_row * a.pitch;
  for (TermArrays* const terms : {&a.dscores, &a.weights}) {
    terms->sizes += pairs, terms->errors += pairs, terms->own_errors += pairs;
  }
  return c;
}

/// From the first key of a tile of keys on, all that the rows of a tile see. Tiles of keys that
/// begin elsewhere are not formed. Neither end of what a row sees falls from one row to the next.
__device__ KeyRange keys_of_tile(const Problem& p, const HeadRows& c, std::int64_t tile) {
  const std::int64_t first = c.first + tile * tile_rows;
  const std::int64_t end = min(min(first + tile_rows, c.first + c.count), p.query_len_of(c.batch));
  if (first >= end) return {};
  return {p.visible_range(c.batch, first).begin / tile_columns * tile_columns,
          p.visible_range(c.batch, end - 1).end};
}

}  // namespace
}  // namespace attest
