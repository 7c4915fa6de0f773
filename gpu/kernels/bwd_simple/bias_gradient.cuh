#pragma once

// The gradient of a bias: dbias of a query and a key is the sum of P (dP - delta) over the entries
// and heads that share the element. A sum again, which a block forms in order and writes once: a
// block has a tile of one plane of the bias, keeps its sums in registers, and forms S and dO V^T of
// all entries and heads that share the plane, once more. Barriers (1) and (2) are those of
// kernels.cuh.

#include <cstdint>

#include "gpu/kernels/bwd_simple/kernels.cuh"

namespace attest {

/// Entries or heads [first, past).
struct BwdRange {
  std::int64_t first, past;
};

/// The gradient of the bias for the queries and keys of one tile of one of its planes. Pairs that
/// nobody sees get 0, those past an entry's lengths among them.
template <Executor home, typename T, int D, int Br, int Bc>
__global__ void __launch_bounds__(2 * Br) bwd_simple_bias(BackwardArguments a) {
  using Shape = BwdShape<T, D, Br, Bc>;
  using Tile = SwizzledTile<T, D>;
  using Products = BwdProducts<Shape>;
  const Problem& problem = a.problem;
  const std::int64_t key_tiles = (problem.key_len + Bc - 1) / Bc;
  const std::int64_t row_tiles = (problem.query_len + Br - 1) / Br;
  const std::int64_t plane = blockIdx.x / (key_tiles * row_tiles);
  const int first_key = static_cast<int>(blockIdx.x % key_tiles) * Bc;
  const int first_row = static_cast<int>(blockIdx.x / key_tiles % row_tiles) * Br;
  // A plane of all heads is one that heads share, and so for entries.
  const bool all_heads = a.bias_strides.head == 0, all_entries = a.bias_strides.batch == 0;
  const std::int64_t planes_of_entry = all_heads ? 1 : problem.query_heads;
  const std::int64_t own_head = plane % planes_of_entry, own_entry = plane / planes_of_entry;
  const BwdRange heads =
      all_heads ? BwdRange{0, problem.query_heads} : BwdRange{own_head, own_head + 1};
  const BwdRange entries =
      all_entries ? BwdRange{0, problem.batch} : BwdRange{own_entry, own_entry + 1};
  const int warp_first = static_cast<int>(threadIdx.x) / 32 * 16;  // of the tile's rows
  const int row = first_row + warp_first + static_cast<int>(threadIdx.x) % 32 / 4;
  const int k_columns = static_cast<int>(problem.head_dim);
  const int v_columns = static_cast<int>(problem.output_dim());

  T* const shared = dynamic_shared<T>();
  const Tile Q{shared}, dO{Q.first + Br * D}, K{dO.first + Br * D}, V{K.first + Bc * D};
  clear_columns(Q, Br, k_columns);
  clear_columns(dO, Br, v_columns);
  clear_columns(K, Bc, k_columns);
  clear_columns(V, Bc, v_columns);
  const Tile own_q{Q.first + warp_first * D}, own_do{dO.first + warp_first * D};

  typename Shape::Scores sums = {};
  const PairWeigher weigher(problem);
  for (std::int64_t entry_index = entries.first; entry_index < entries.past; ++entry_index) {
    const BackwardEntry entry(a, entry_index);
    if (first_key >= entry.keys) continue;
    for (std::int64_t head = heads.first; head < heads.past; ++head) {
      const BwdModifiedPairs pairs(a, entry, entry_index, head);
      if (!pairs.any_sees(first_row, Br, first_key, Bc)) continue;
      const bool all_see = pairs.all_see(first_row, Br, first_key, Bc);
      const std::int64_t kv_head = problem.kv_head_of(head);
      __syncthreads();  // (1)
      load_rows(entry.row_view<const T>(a.q, a.q_strides, head), first_row, Br, k_columns, Q);
      load_rows(entry.row_view<const T>(a.d_o, a.do_strides, head), first_row, Br, v_columns, dO);
      load_rows(entry.key_view<const T>(a.k, a.k_strides, kv_head), first_key, Bc, k_columns, K);
      load_rows(entry.key_view<const T>(a.v, a.v_strides, kv_head), first_key, Bc, v_columns, V);
      const LaneRowTerms terms(RowTerms(a, entry_index, head), row, entry.rows);
      wait_for_tiles();

      typename Shape::Scores s = {}, dp = {};
      Products::add_dots(own_q, K, s);
      Products::add_dots(own_do, V, dp);
      for_each_pair(s[0], dp[0], [&](float& x, float& y, int i, int key) {
        const bool is_seen = all_see || pairs.sees(row + 8 * i, first_key + key);
        y = weigher.weigh(
            x, y, pairs.pair(row + 8 * i, first_key + key, terms.lse2[i], terms.delta[i], is_seen));
      });
#pragma unroll
      for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[0][j][i] += dp[0][j][i];
      }
    }
  }
  float* const to = a.d_bias + a.bias_strides.offset(own_entry, own_head, 0);
  for_each_pair(sums[0], sums[0], [&](float& x, float&, int i, int key) {
    const int to_row = row + 8 * i, to_key = first_key + key;
    if (to_row < problem.query_len && to_key < problem.key_len) {
      to[to_row * a.bias_strides.row + to_key] = x;
    }
  });
}

}  // namespace attest
