#pragma once

// The launches around the main one. Before it: of every row dO.O and LSE log2(e), its unit where dQ
// is summed in units, and sums of dQ that are 0. After it: dQ in the element type.

#include <cmath>
#include <cstdint>

#include "core/operations/backward_arguments.hpp"
#include "gpu/kernels/bwd_wgmma/parameters.cuh"
#include "gpu/kernels/bwd_wgmma/rows_out.cuh"
#include "gpu/kernels/bwd_wgmma/units.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

inline constexpr int bwd_prepare_threads = 256;

/// The row tile that a block of the launches around the main one has.
struct BwdRowTile {
  int plane, tile;         ///< query head among all; of its rows
  int entry, head;         ///< of the tensors; packed entries: 0
  int first_row, queries;  ///< row of query 0 in memory; of the entry
  std::int64_t first_lse;  ///< LSE of query 0

  __device__ __forceinline__ BwdRowTile(const BackwardArguments& a, int tiles)
      : plane(static_cast<int>(blockIdx.x) / tiles), tile(static_cast<int>(blockIdx.x) % tiles) {
    const auto heads = static_cast<int>(a.problem.query_heads);
    entry = plane / heads;
    head = plane % heads;
    first_row = 0;
    queries = static_cast<int>(a.problem.query_len);
    first_lse = plane * a.problem.query_len;
    if (a.query_starts != nullptr) {
      first_row = a.query_starts[entry];
      queries = a.query_starts[entry + 1] - first_row;
      first_lse = std::int64_t{head} * a.query_starts[a.problem.batch] + first_row;
      entry = 0;
    }
  }
  /// Number of the tile among the tiles of all query heads.
  __device__ std::int64_t number(int tiles) const {
    return static_cast<std::int64_t>(plane) * tiles + tile;
  }
};

/// 8 numbers of a row from `column` on, 0 past its end.
template <typename T>
__device__ __forceinline__ void load_eight(float (&x)[8], const T* row, int column, int columns) {
  if (column + 8 <= columns) {
    const uint4 bits = *reinterpret_cast<const uint4*>(row + column);
    T numbers[8];
    memcpy(numbers, &bits, sizeof bits);
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = to_float(numbers[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = column + i < columns ? to_float(row[column + i]) : 0.0F;
}

/// Largest |k| and |v| of the keys that a query sees, by `lanes` lanes together.
template <int lanes>
__device__ __forceinline__ float2 largest_seen(const BackwardArguments& a, const BwdSums& sums,
                                               const BwdRowTile& at, int query, int lane) {
  const auto heads = static_cast<int>(a.problem.query_heads);
  const auto kv_heads = static_cast<int>(a.problem.kv_heads);
  const int entry = at.plane / heads;
  const int keys = a.key_starts == nullptr ? static_cast<int>(a.problem.key_len)
                                           : a.key_starts[entry + 1] - a.key_starts[entry];
  const KeyReach reach(a.problem, at.queries, keys);
  BwdSeen seen{reach.first_key(query), reach.past_key(query)};
  if (sums.keys_of_rows != nullptr && query < at.queries) {
    seen = sums.keys_of_rows[entry * a.problem.query_len + query];
  }
  return largest_seen<lanes>(sums, entry * kv_heads + at.head / (heads / kv_heads), seen.first,
                             seen.past, lane);
}

/// A block for each row tile. D / 8 lanes share a row: a chain of 8 products each, then a tree.
template <Executor home, typename T, int D, bool in_units>
__global__ void __launch_bounds__(bwd_prepare_threads)
    bwd_prepare(BackwardArguments a, BwdSums sums) {
  const BwdRowTile at(a, sums.tiles);
  let_successor_begin();
  if constexpr (in_units) wait_for_predecessor();
  if (at.tile * bwd_query_tile >= at.queries) return;
  const auto thread = static_cast<int>(threadIdx.x);
  // 32 lanes do for 192 columns, too: a warp shuffles among powers of two.
  constexpr int lanes = D > 128 ? 32 : D / 8, rows_at_once = bwd_prepare_threads / lanes;
  const auto columns = static_cast<int>(a.problem.output_dim());
  const std::int64_t first = at.number(sums.tiles) * bwd_query_tile;
#pragma unroll
  for (int i = 0; i < bwd_query_tile; i += rows_at_once) {
    const int row = i + thread / lanes, query = at.tile * bwd_query_tile + row;
    const bool exists = query < at.queries;
    float sum = 0.0F;
    [[maybe_unused]] float gradient = 0.0F;  // sum of |dO|
    if (exists) {
      float o[8], d_o[8];
      const int column = 8 * (thread % lanes);
      load_eight(
          o,
          static_cast<const T*>(a.o) + a.o_strides.offset(at.entry, at.head, at.first_row + query),
          column, columns);
      load_eight(d_o,
                 static_cast<const T*>(a.d_o) +
                     a.do_strides.offset(at.entry, at.head, at.first_row + query),
                 column, columns);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum = fmaf(o[e], d_o[e], sum);
      if constexpr (in_units) {
#pragma unroll
        for (int e = 0; e < 8; ++e) gradient += fabsf(d_o[e]);
      }
    }
#pragma unroll
    for (int step = 1; step < lanes; step *= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
    // dS = P (dP - delta + dLSE).
    if (exists && a.d_lse != nullptr) sum -= a.d_lse[at.first_lse + query];
    [[maybe_unused]] float size = 0.0F;
    if constexpr (in_units) {
#pragma unroll
      for (int step = 1; step < lanes; step *= 2) {
        gradient += __shfl_xor_sync(0xffffffffU, gradient, step);
      }
      const float2 seen = largest_seen<lanes>(a, sums, at, query, thread % lanes);
      size = (gradient * seen.y + fabsf(sum)) * seen.x;
    }
    if (thread % lanes == 0) {
      const float lse = exists ? a.lse[at.first_lse + query] : -INFINITY;
      // A row that sees nothing, or does not exist: every weight is 0.
      const bool is_empty = lse == -INFINITY;
      sums.lse[first + row] = is_empty ? INFINITY : lse * bwd_log2_e;
      sums.delta[first + row] = is_empty ? 0.0F : sum;
      if constexpr (in_units) sums.units_in_one[first + row] = units_in_one(is_empty ? 0.0F : size);
    }
  }
  constexpr int words = D / panel_columns * bwd_dq_panel_words<in_units>;
  auto* const dq = reinterpret_cast<float4*>(sums.dq + at.number(sums.tiles) * words);
#pragma unroll 4
  for (int i = thread; i < words / 4; i += bwd_prepare_threads) {
    dq[i] = float4{0.0F, 0.0F, 0.0F, 0.0F};
  }
}

/// A warpgroup for each row tile: the order of its threads is that of wgmma's results.
template <Executor home, typename T, int D, bool in_units>
__global__ void __launch_bounds__(warpgroup_threads)
    bwd_convert(BackwardArguments a, BwdSums sums) {
  const BwdRowTile at(a, sums.tiles);
  if (at.tile * bwd_query_tile >= at.queries) return;
  wait_for_predecessor();
  const auto thread = static_cast<int>(threadIdx.x);
  constexpr int panels = D / panel_columns, panel_words = bwd_dq_panel_words<in_units>;
  const float* const from = sums.dq + at.number(sums.tiles) * (panels * panel_words);
  float dq[D / 2];
#pragma unroll
  for (int i = 0; i < D / 8; ++i) {
    const float4 x = reinterpret_cast<const float4*>(
        from + i / 8 * panel_words)[i % 8 * warpgroup_threads + thread];
    dq[4 * i] = x.x;
    dq[4 * i + 1] = x.y;
    dq[4 * i + 2] = x.z;
    dq[4 * i + 3] = x.w;
  }
  if constexpr (in_units) {
    const int first = 16 * (thread / 32) + thread % 32 / 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first + 8 * h;
      float unit = unit_of(sums.units_in_one[at.number(sums.tiles) * bwd_query_tile + row]);
#pragma unroll
      for (int panel = 0; panel < panels; ++panel) {
        const float* const used = from + (panel + 1) * panel_words - bwd_query_tile;
        if (__float_as_uint(used[row]) >= dq_range) unit = NAN;
      }
#pragma unroll
      for (int i = 0; i < D / 8; ++i) {
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          float& x = dq[4 * i + e];
          x = __int2float_rn(__float_as_int(x)) * unit;
        }
      }
    }
  }
  const int row = 16 * (thread / 32), query = at.tile * bwd_query_tile + row;
  const SharedAddress ordered = SharedAddress(dynamic_shared<unsigned char>());
  store_rows(
      dq, a.problem.scale, ordered + row * panel_row_bytes, bwd_query_tile * panel_row_bytes,
      RowsOut<T>{
          static_cast<T*>(a.dq) + a.dq_strides.offset(at.entry, at.head, at.first_row + query),
          a.dq_strides.row, at.queries - query, static_cast<int>(a.problem.head_dim)});
}

}  // namespace attest
