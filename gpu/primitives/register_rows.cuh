#pragma once

#include <cstdint>

#include "core/run/kernel.hpp"
#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/shared_tile.cuh"

namespace attest {

/// Number of keys of the tile that each of a thread's rows sees. They do not fall: a later query
/// sees no fewer keys. A row past the last query counts as the last one, and nobody stores what it
/// gives.
template <int TM>
__device__ void keys_seen_by_rows(const Problem& problem, std::int64_t first_query,
                                  std::int64_t first_key, int key_tile, int (&seen)[TM]) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const std::int64_t query = first_query + i;
    const std::int64_t last = problem.query_len - 1;
    seen[i] = keys_seen(problem.visible_keys(query < last ? query : last), first_key, key_tile);
  }
}

/// m_new[i] <- the maximum of m[i] and the first seen[i] scores of row i.
template <int TM>
__device__ void row_maxima(const SharedTile& S, const int (&seen)[TM], const float (&m)[TM],
                           float (&m_new)[TM]) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    m_new[i] = m[i];
    for (int k = 0; k < seen[i]; ++k) m_new[i] = fmaxf(m_new[i], S.row(i)[k]);
  }
}

/// The running statistics and the columns of O, not normalised, of a thread's rows. Threads of the
/// same row hold copies of the statistics.
template <int TM, int columns>
struct RegisterRows {
  float m[TM], l[TM];
  float o[TM][columns] = {};

  __device__ RegisterRows() {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      m[i] = -INFINITY;
      l[i] = 0.0F;
    }
  }

  /// Moves O and l to the maxima m_new. What the tile adds to them comes afterwards.
  template <typename Exp>
  __device__ void rescale(const float (&m_new)[TM]) {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      const float factor = exp_below<Exp>(m[i], m_new[i]);
      l[i] = factor * l[i];
#pragma unroll
      for (int c = 0; c < columns; ++c) o[i][c] = factor * o[i][c];
      m[i] = m_new[i];
    }
  }

  /// l[i] += the sum of the first seen[i] weights of row i, added one after the other.
  __device__ void add_to_sums(const SharedTile& P, const int (&seen)[TM]) {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      float tile_sum = 0.0F;
      for (int k = 0; k < seen[i]; ++k) tile_sum += P.row(i)[k];
      l[i] += tile_sum;
    }
  }

  /// Stores normalised O: `count` registers from `first` on go to columns from `column` on, as far
  /// as they lie below `end`.
  template <int count>
  __device__ __forceinline__ void store(const RowView<float>& to, std::int64_t query, int first,
                                        int column, int end) const {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      if (query + i >= to.count) continue;
      const float divisor = divisor_of(l[i]);
#pragma unroll
      for (int c = 0; c < count; ++c) {
        if (column + c < end) to.row(query + i)[column + c] = o[i][first + c] / divisor;
      }
    }
  }

  /// One thread of a row does this. `lse` is that of the head's first query.
  __device__ void store_lse(float* lse, std::int64_t query, std::int64_t query_len) const {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      if (query + i < query_len) lse[query + i] = log_sum_exp(m[i], l[i]);
    }
  }
};

}  // namespace attest
