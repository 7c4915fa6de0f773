#pragma once

// The backward pass of attention as loops, one for each sum [FA2 Alg. 2, without its atomics; the
// order of Triton's tutorial 06].
//
// Idea
//   dK and dV of a key are sums over query rows, dQ of a row is one over keys. So each has a kernel
//   of its own, in which a block keeps its gradients in registers, goes over everything that they
//   depend on, in order, and writes them once: no atomics, the same bits at every launch. The price
//   is seven products where five would do, since both kernels form S and dO V^T:
//     bwd_simple_keys      S^T = K Q^T, dP^T = V dO^T;  dV += P^T dO, dK += dS^T Q
//     bwd_simple_queries   S = Q K^T,   dP = dO V^T;    dQ += dS K
//   Before them backward_delta forms what the pairs of a row share, its LSE2 and delta. Score
//   modifications are a matter of Pairs (modifications.cuh), but for sinks, which a row's LSE has
//   in it. Gradients of a bias and of sinks are sums of their own, with kernels of their own
//   (bias_gradient.cuh, ../backward_sinks.cuh).
// Resident
//   shared     a block's own tiles, K and V or Q and dO [own, D]; the other two [other, D];
//              swizzled; LSE2 and delta of the other rows (bwd_simple_keys)
//   registers  dK and dV, or dQ; S and dP, which become P and dS, already where the next product
//              wants its left operand
// Legend
//   Br, Bc query_tile, key_tile; D head_dim rounded up to a size that is compiled, the columns
//   between being zeros, as are rows past the end; LSE2 = LSE log2(e); delta = dO.O - dLSE
// Grouped heads
//   the block of a key tile goes over all query heads that share it: their sum never leaves it.
// Masking
//   Tiles in which no row sees a key are left out. In the others P and dS of a pair that is not
//   seen are set to 0 (weigh.cuh); then they multiply what lies there, so a hidden NaN does reach
//   the rows of its warp (ignores_hidden_nan is false).
// Barriers
//   (1) all have read the other tiles before the next ones take their place
//   (2) what was loaded, by whichever thread, is there
// Limits
//   head_dim and value_dim up to 128; arithmetic: hopper() for 16 bits, FMAs for fp32.

#include <cstdint>
#include <type_traits>

#include "gpu/kernels/backward_delta.cuh"
#include "gpu/kernels/bwd_simple/products.cuh"
#include "gpu/kernels/bwd_simple/shape.cuh"
#include "gpu/kernels/bwd_simple/weigh.cuh"
#include "gpu/primitives/async_copy.cuh"

namespace attest {

/// A tile of `tile_rows` rows from row `first` on, `columns` each. Arrives after the next
/// wait_for_tiles().
template <typename T, int D>
__device__ void load_rows(const RowView<const T>& from, int first, int tile_rows, int columns,
                          const SwizzledTile<T, D>& tile) {
  constexpr int size = static_cast<int>(sizeof(T));
  const int width = widest_copy(from.first, from.stride * size, columns * size);
  load_swizzled_async(from, first, tile_rows, columns, width, tile);
}
inline __device__ void wait_for_tiles() {
  AsyncCopies::commit();
  AsyncCopies::wait<0>();
  __syncthreads();  // (2)
}

/// LSE2 and delta of a lane's two rows, `row` and the one 8 below.
struct LaneRowTerms {
  float lse2[2], delta[2];

  __device__ LaneRowTerms(const RowTerms& terms, int row, int rows) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool exists = row + 8 * i < rows;
      lse2[i] = exists ? terms.lse2[row + 8 * i] : INFINITY;
      delta[i] = exists ? terms.delta[row + 8 * i] : 0.0F;
    }
  }
};

/// Writes the lane's part of a warp's 16 rows, of which its first is row `row`, times `factor`.
template <typename Outputs, typename T>
__device__ void store_rows(const Outputs& o, float factor, const RowView<T>& to, int row,
                           int columns) {
#pragma unroll
  for (int n = 0; n < column_groups<std::remove_cvref_t<decltype(o[0])>>; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int to_row = row + i / 2 * 8;
      const int column = 8 * n + static_cast<int>(threadIdx.x) % 4 * 2 + i % 2;
      if (to_row < to.count && column < columns) {
        to.row(to_row)[column] = from_float<T>(o[0][n][i] * factor);
      }
    }
  }
}

/// dK and dV of the keys of one tile of a KV head.
template <Executor home, typename T, int D, int Br, int Bc, typename Pairs>
__global__ void __launch_bounds__(2 * Bc) bwd_simple_keys(BackwardArguments a) {
  using Shape = BwdShape<T, D, Bc, Br>;
  using Tile = SwizzledTile<T, D>;
  using Products = BwdProducts<Shape>;
  const Problem& problem = a.problem;
  const std::int64_t tiles = (problem.key_len + Bc - 1) / Bc, head = blockIdx.x / tiles;
  const std::int64_t kv_head = head % problem.kv_heads, entry_index = head / problem.kv_heads;
  const BackwardEntry entry(a, entry_index);
  const int first_key = static_cast<int>(blockIdx.x % tiles) * Bc;
  if (first_key >= entry.keys) return;
  const int warp_first = static_cast<int>(threadIdx.x) / 32 * 16;  // of the tile's keys
  const int key = first_key + warp_first + static_cast<int>(threadIdx.x) % 32 / 4;
  const int k_columns = static_cast<int>(problem.head_dim);
  const int v_columns = static_cast<int>(problem.output_dim());

  T* const shared = dynamic_shared<T>();
  const Tile K{shared}, V{K.first + Bc * D}, Q{V.first + Bc * D}, dO{Q.first + Br * D};
  float* const lse2 = reinterpret_cast<float*>(dO.first + Br * D);
  float* const delta = lse2 + Br;
  clear_columns(K, Bc, k_columns);
  clear_columns(V, Bc, v_columns);
  clear_columns(Q, Br, k_columns);
  clear_columns(dO, Br, v_columns);
  load_rows(entry.key_view<const T>(a.k, a.k_strides, kv_head), first_key, Bc, k_columns, K);
  load_rows(entry.key_view<const T>(a.v, a.v_strides, kv_head), first_key, Bc, v_columns, V);
  const Tile own_k{K.first + warp_first * D}, own_v{V.first + warp_first * D};

  typename Shape::Outputs dk = {}, dv = {};
  const PairWeigher weigher(problem);
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    const auto q = entry.row_view<const T>(a.q, a.q_strides, h);
    const auto d_o = entry.row_view<const T>(a.d_o, a.do_strides, h);
    const RowTerms terms(a, entry_index, h);
    const Pairs pairs(a, entry, entry_index, h);
    for (int first_row = 0; first_row < entry.rows; first_row += Br) {
      if (!pairs.any_sees(first_row, Br, first_key, Bc)) continue;
      __syncthreads();  // (1)
      load_rows(q, first_row, Br, k_columns, Q);
      load_rows(d_o, first_row, Br, v_columns, dO);
      for (int i = static_cast<int>(threadIdx.x); i < Br; i += Shape::threads) {
        const bool exists = first_row + i < entry.rows;
        lse2[i] = exists ? terms.lse2[first_row + i] : INFINITY;
        delta[i] = exists ? terms.delta[first_row + i] : 0.0F;
      }
      wait_for_tiles();

      typename Shape::Scores s = {}, dp = {};
      Products::add_dots(own_k, Q, s);
      Products::add_dots(own_v, dO, dp);
      const bool all_see = pairs.all_see(first_row, Br, first_key, Bc);
      for_each_pair(s[0], dp[0], [&](float& x, float& y, int i, int row) {
        const bool is_seen = all_see || pairs.sees(first_row + row, key + 8 * i);
        weigher.weigh(x, y,
                      pairs.pair(first_row + row, key + 8 * i, lse2[row], delta[row], is_seen));
      });
      Products::add_rows(s, dO, dv);
      Products::add_rows(dp, Q, dk);
    }
  }
  store_rows(dk, problem.scale, entry.key_view<T>(a.dk, a.dk_strides, kv_head), key, k_columns);
  store_rows(dv, 1.0F, entry.key_view<T>(a.dv, a.dv_strides, kv_head), key, v_columns);
}

/// dQ of the rows of one tile of a query head.
template <Executor home, typename T, int D, int Br, int Bc, typename Pairs>
__global__ void __launch_bounds__(2 * Br) bwd_simple_queries(BackwardArguments a) {
  using Shape = BwdShape<T, D, Br, Bc>;
  using Tile = SwizzledTile<T, D>;
  using Products = BwdProducts<Shape>;
  const Problem& problem = a.problem;
  const std::int64_t tiles = (problem.query_len + Br - 1) / Br, block_head = blockIdx.x / tiles;
  const std::int64_t head = block_head % problem.query_heads;
  const std::int64_t entry_index = block_head / problem.query_heads;
  const BackwardEntry entry(a, entry_index);
  const int first_row = static_cast<int>(blockIdx.x % tiles) * Br;
  if (first_row >= entry.rows) return;
  const int warp_first = static_cast<int>(threadIdx.x) / 32 * 16;  // of the tile's rows
  const int row = first_row + warp_first + static_cast<int>(threadIdx.x) % 32 / 4;
  const std::int64_t kv_head = problem.kv_head_of(head);
  const int k_columns = static_cast<int>(problem.head_dim);
  const int v_columns = static_cast<int>(problem.output_dim());

  T* const shared = dynamic_shared<T>();
  const Tile Q{shared}, dO{Q.first + Br * D}, K{dO.first + Br * D}, V{K.first + Bc * D};
  clear_columns(Q, Br, k_columns);
  clear_columns(dO, Br, v_columns);
  clear_columns(K, Bc, k_columns);
  clear_columns(V, Bc, v_columns);
  load_rows(entry.row_view<const T>(a.q, a.q_strides, head), first_row, Br, k_columns, Q);
  load_rows(entry.row_view<const T>(a.d_o, a.do_strides, head), first_row, Br, v_columns, dO);
  const Tile own_q{Q.first + warp_first * D}, own_do{dO.first + warp_first * D};
  const auto k = entry.key_view<const T>(a.k, a.k_strides, kv_head);
  const auto v = entry.key_view<const T>(a.v, a.v_strides, kv_head);

  const LaneRowTerms terms(RowTerms(a, entry_index, head), row, entry.rows);
  const Pairs pairs(a, entry, entry_index, head);
  typename Shape::Outputs dq = {};
  const PairWeigher weigher(problem);
  for (int first_key = 0; first_key < entry.keys; first_key += Bc) {
    if (!pairs.any_sees(first_row, Br, first_key, Bc)) continue;
    __syncthreads();  // (1)
    load_rows(k, first_key, Bc, k_columns, K);
    load_rows(v, first_key, Bc, v_columns, V);
    wait_for_tiles();

    typename Shape::Scores s = {}, dp = {};
    Products::add_dots(own_q, K, s);
    Products::add_dots(own_do, V, dp);
    const bool all_see = pairs.all_see(first_row, Br, first_key, Bc);
    for_each_pair(s[0], dp[0], [&](float& x, float& y, int i, int key) {
      const bool is_seen = all_see || pairs.sees(row + 8 * i, first_key + key);
      weigher.weigh(
          x, y, pairs.pair(row + 8 * i, first_key + key, terms.lse2[i], terms.delta[i], is_seen));
    });
    Products::add_rows(dp, K, dq);
  }
  store_rows(dq, problem.scale, entry.row_view<T>(a.dq, a.dq_strides, head), row, k_columns);
}

}  // namespace attest
