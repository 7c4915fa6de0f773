// K6, sliced head dim [S3 kernel 6]: K and V pass through shared memory a slice of columns at a
// time, so that a block needs less of it and more blocks fit on a multiprocessor.
//
// Idea
//   As K5. Scores grow over the slices of K in registers; then the slices of V give one group of
//   columns of O each.
// Resident
//   shared     Q [Br, D] for the whole loop; K [Bc, Bk] in rows of Bk + 1 and V [Bc, Bk], a slice
//              at a time; S [Br, Bc] in rows of Bc + 1, overwritten by P. With D = 64, Bk = 32,
//              Br = Bc = 32, TM = TN = 4: no conflicts but the 4-way ones on Q (K8's step).
//   registers  O, not normalised; m and l of the thread's rows, the same in all threads of a row
//   global     nothing but the inputs and the one write of O and LSE
// Legend
//   as K4; Bk dim_tile
// Masking
//   as K4
// Barriers
//   (1) all have read the previous slice of K, and P, before they are overwritten
//   (2) the slice of K and, the first time, Q are complete before they are read
//   (3) a row of S is complete before its maximum is taken
//   (4) all have read S before P overwrites it
//   (5) P is complete before other threads read it; all have read the previous slice of V
//   (6) the slice of V is complete before it is read
// Limits
//   fp32; head_dim to 256 where the columns fit the registers; what
//   why_register_tiles_do_not_fit() says.
#include <array>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/register_plan.cuh"
#include "gpu/primitives/register_rows.cuh"
#include "gpu/primitives/register_tile.cuh"

namespace attest {
namespace {

template <int TM, int TN, int columns, int slices>
__device__ void make_tile(const ForwardArguments& a, const TilePosition& tile) {
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
  const SharedTile Q{dynamic_shared<float>(), D};
  const SharedTile K{Q.row(Br), Bk + 1};
  const SharedTile V{K.row(Bc), value_columns};
  const SharedTile S{V.row(Bc), Bc + 1};
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
    store_tile_part(s, S.from(at.row, at.key));
    __syncthreads();  // (3)
    float m_new[TM];
    row_maxima(S.from(at.row), seen, rows.m, m_new);
    __syncthreads();  // (4)
    const SharedTile P = S;
    weigh_scores<FastExp, TN>(P.from(at.row, at.key), at.key, seen, m_new);
    rows.template rescale<FastExp>(m_new);
#pragma unroll
    for (int slice = 0; slice < slices; ++slice) {
      const int d = slice * Bk;
      if (d >= D) break;
      const int dims = min(Bk, D - d);
      __syncthreads();  // (5)
      load_widest(columns_from(x.v, d), first_key, Bc, dims, value_columns, V);
      __syncthreads();  // (6)
      if (at.column < dims) {
        add_weighted_values<columns>(P.from(at.row), V.from(0, at.column), seen, rows.o,
                                     slice * columns);
      }
    }
    rows.add_to_sums(P.from(at.row), seen);
  }

#pragma unroll
  for (int slice = 0; slice < slices; ++slice) {
    rows.template store<columns>(x.o, query, slice * columns, slice * Bk + at.column,
                                 min(D, (slice + 1) * Bk));
  }
  if (at.key == 0) rows.store_lse(a.lse + head * problem.query_len, query, problem.query_len);
}

template <int TM, int TN, int columns, int slices, Scheduling::Value scheduling>
__global__ void __launch_bounds__(max_register_threads)
    k6_sliced_dims(ForwardArguments a, TileLaunch launch) {
  for_each_tile<scheduling>(
      a, launch, [&](const TilePosition& tile) { make_tile<TM, TN, columns, slices>(a, tile); });
}

template <int TM, int TN, int columns, int slices>
constexpr TileKernels one_tile{k6_sliced_dims<TM, TN, columns, slices, Scheduling::one_tile>};
template <int TM, int TN, int columns, int slices>
constexpr TileKernels with_persistent{
    k6_sliced_dims<TM, TN, columns, slices, Scheduling::one_tile>,
    k6_sliced_dims<TM, TN, columns, slices, Scheduling::persistent>};
constexpr std::array variants{RegisterVariant{4, 4, 4, 2, with_persistent<4, 4, 4, 2>},
                              RegisterVariant{4, 4, 8, 2, one_tile<4, 4, 8, 2>},
                              RegisterVariant{4, 4, 4, 8, one_tile<4, 4, 4, 8>},
                              RegisterVariant{2, 4, 4, 4, one_tile<2, 4, 4, 4>},
                              RegisterVariant{4, 2, 4, 4, one_tile<4, 2, 4, 4>},
                              RegisterVariant{8, 4, 4, 2, one_tile<8, 4, 4, 2>},
                              RegisterVariant{8, 8, 4, 2, one_tile<8, 8, 4, 2>}};

std::int64_t shared_floats(const Problem& problem, const Plan& plan,
                           const RegisterVariant& variant) {
  const auto [Br, Bc] = std::pair(plan.query_tile, plan.key_tile);
  const std::int64_t K = Bc * (plan.dim_tile + 1);
  const std::int64_t V = Bc * value_stride(problem, plan, variant);
  return Br * problem.head_dim + K + V + Br * (Bc + 1);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  return why_register_tiles_do_not_fit(variants, shared_floats, problem, plan);
}

const KernelRegistration registration{
    {.name = "k6_sliced_dims",
     .summary = "K5 with slices of the head dim in shared memory",
     .source = "K6 [S3 kernel 6]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision = register_tile_precision,
     .plans =
         [](const Problem& problem) {
           return register_tile_plans(problem, unsupported, {.dim_tiles = {32, 16, 20}});
         },
     .unsupported = unsupported,
     .workspace_bytes = tile_counter_bytes,
     .launch = [](const ForwardArguments& a,
                  Device& device) { launch_register_tiles(variants, shared_floats, a, device); }}};

}  // namespace
}  // namespace attest
