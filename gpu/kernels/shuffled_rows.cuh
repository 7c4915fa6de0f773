#pragma once

// Row statistics without shared memory: what K7 and K8 do, which differ in how rows of Q lie there.
//
// Idea
//   As K6, but scores stay in registers. The Bc / TN threads of a row are lanes of one warp: they
//   exchange maxima and sums by xor shuffles, form weights in registers, and write each to shared
//   memory once. K6 writes S, reads every row of it Bc / TN times, and overwrites it by P.
// Resident
//   shared     Q [Br, D] in rows of D + query_padding, for the whole loop; K [Bc, Bk] in rows of
//              Bk + 1 and V [Bc, Bk], a slice at a time; P [Br, Bc] in rows of Bc + 1
//   registers  S, then P; O, not normalised; m and l of the thread's rows, bit for bit the same in
//              all threads of a row
//   global     nothing but the inputs and the one write of O and LSE
// Legend
//   as K4; Bk dim_tile
// Masking
//   as K4; the weight of a key that a row does not see is 0 in the sum, and P V does not visit it.
// Barriers
//   (1) all have read the previous slice of K, and P, before they are overwritten
//   (2) the slice of K and, the first time, Q are complete before they are read
//   (3) P is complete before other threads read it; all have read the previous slice of V
//   (4) the slice of V is complete before it is read
// Limits
//   fp32; Bc / TN a power of two up to 32; head_dim to 256 where the columns fit the registers;
//   what why_register_tiles_do_not_fit() says.
#include <array>
#include <string>
#include <utility>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "gpu/primitives/register_plan.cuh"
#include "gpu/primitives/register_rows.cuh"
#include "gpu/primitives/register_tile.cuh"
#include "gpu/primitives/row_shuffle.cuh"

namespace attest {

template <int query_padding, int TM, int TN, int columns, int slices>
__device__ void make_shuffled_tile(const ForwardArguments& a, const TilePosition& tile) {
  const Problem& problem = a.problem;
  const int Br = static_cast<int>(a.plan.query_tile);
  const int Bc = static_cast<int>(a.plan.key_tile);
  const int Bk = static_cast<int>(a.plan.dim_tile);
  const int D = static_cast<int>(problem.head_dim);
  const RegisterTile<TM, TN, columns> at(Bc);

  const std::int64_t head = tile.head;  // of all batch * query_heads
  const std::int64_t first_query = tile.tile * Br;
  const std::int64_t query = first_query + at.row;
  const HeadRows x = head_rows(a, head / problem.query_heads, head % problem.query_heads);

  const int value_columns = ceil_div(Bk, columns) * columns;
  const SharedTile Q{dynamic_shared<float>(), D + query_padding};
  const SharedTile K{Q.row(Br), Bk + 1};
  const SharedTile V{K.row(Bc), value_columns};
  const SharedTile P{V.row(Bc), Bc + 1};
  RegisterRows<TM, slices * columns> rows;

  load_widest(x.q, first_query, Br, D, D, Q);
  const std::int64_t last_query = first_query + x.q.existing(first_query, Br) - 1;
  const std::int64_t tile_visible = problem.visible_keys(last_query);  // later queries see more

  for (std::int64_t first_key = 0; first_key < tile_visible; first_key += Bc) {
    int seen[TM];
    keys_seen_by_rows(problem, query, first_key, Bc, seen);

    float s[TM][TN] = {};
    for (int d = 0; d < D; d += Bk) {
      const int dims = min(Bk, D - d);
      __syncthreads();  // (1)
      load_widest(columns_from(x.k, d), first_key, Bc, dims, dims, K);
      __syncthreads();  // (2)
      add_outer_products(Q.from(at.row, d), K.from(at.key), dims, s);
    }
    scale_scores(s, problem.scale);
    float m_new[TM];
    row_maxima_over_lanes(s, at.key, seen, at.row_threads, rows.m, m_new);
    weigh_in_registers<FastExp>(s, at.key, seen, m_new);
    rows.template rescale<FastExp>(m_new);
    add_sums_over_lanes(s, at.row_threads, rows.l);
    store_tile_part(s, P.from(at.row, at.key));
#pragma unroll
    for (int slice = 0; slice < slices; ++slice) {
      const int d = slice * Bk;
      if (d >= D) break;
      const int dims = min(Bk, D - d);
      __syncthreads();  // (3)
      load_widest(columns_from(x.v, d), first_key, Bc, dims, value_columns, V);
      __syncthreads();  // (4)
      if (at.column < dims) {
        add_weighted_values<columns>(P.from(at.row), V.from(0, at.column), seen, rows.o,
                                     slice * columns);
      }
    }
  }

#pragma unroll
  for (int slice = 0; slice < slices; ++slice) {
    rows.template store<columns>(x.o, query, slice * columns, slice * Bk + at.column,
                                 min(D, (slice + 1) * Bk));
  }
  if (at.key == 0) rows.store_lse(a.lse + head * problem.query_len, query, problem.query_len);
}

/// The executor is part of its name: both have this template.
template <Executor home, int query_padding, int TM, int TN, int columns, int slices,
          Scheduling::Value scheduling>
__global__ void __launch_bounds__(max_register_threads)
    shuffled_rows(ForwardArguments a, TileLaunch launch) {
  for_each_tile<scheduling>(a, launch, [&](const TilePosition& tile) {
    make_shuffled_tile<query_padding, TM, TN, columns, slices>(a, tile);
  });
}

/// Instances of the kernel and their Plans. query_padding: floats behind each row of Q in shared
/// memory, 0 or, so that reads have no bank conflicts, 1.
template <Executor home, int query_padding>
struct ShuffledRows {
  template <int TM, int TN, int columns, int slices, Scheduling::Value scheduling>
  static constexpr auto kernel =
      shuffled_rows<home, query_padding, TM, TN, columns, slices, scheduling>;
  template <int TM, int TN, int columns, int slices>
  static constexpr RegisterVariant one_tile{
      TM, TN, columns, slices, {kernel<TM, TN, columns, slices, Scheduling::one_tile>}};
  template <int TM, int TN, int columns, int slices>
  static constexpr RegisterVariant with_persistent{
      TM,
      TN,
      columns,
      slices,
      {kernel<TM, TN, columns, slices, Scheduling::one_tile>,
       kernel<TM, TN, columns, slices, Scheduling::persistent>}};
  static constexpr std::array variants{
      with_persistent<4, 4, 4, 2>, one_tile<4, 4, 8, 2>, one_tile<4, 4, 4, 8>, one_tile<2, 4, 4, 4>,
      one_tile<4, 2, 4, 4>,        one_tile<8, 4, 4, 2>, one_tile<8, 8, 4, 2>};

  static std::int64_t shared_floats(const Problem& problem, const Plan& plan,
                                    const RegisterVariant& variant) {
    const auto [Br, Bc] = std::pair(plan.query_tile, plan.key_tile);
    const std::int64_t K = Bc * (plan.dim_tile + 1);
    const std::int64_t V = Bc * value_stride(problem, plan, variant);
    return Br * (problem.head_dim + query_padding) + K + V + Br * (Bc + 1);
  }

  static std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
    auto reason = why_register_tiles_do_not_fit(variants, shared_floats, problem, plan);
    return reason ? reason : why_rows_are_not_shuffled(plan);
  }

  static KernelInfo info(std::string name, std::string summary, std::string source) {
    return {.name = std::move(name),
            .summary = std::move(summary),
            .source = std::move(source),
            .executor = home,
            .dataflow = Dataflow::queries_outside,
            .element_types = {ElementType::fp32},
            .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
            .precision = shuffled_rows_precision,
            .plans =
                [](const Problem& problem) {
                  return register_tile_plans(problem, unsupported, {.dim_tiles = {32, 16, 20}});
                },
            .unsupported = unsupported,
            .workspace_bytes = tile_counter_bytes,
            .launch =
                [](const ForwardArguments& a, Device& device) {
                  launch_register_tiles(variants, shared_floats, a, device);
                }};
  }
};

}  // namespace attest
