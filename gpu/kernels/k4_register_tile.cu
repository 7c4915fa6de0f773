// K4, register tiles [S3 kernel 4]: a thread makes TM x TN scores, so that a value read from shared
// memory serves TM or TN FMAs. K3 reads two values for each.
//
// Idea
//   As K3, but (Br / TM) * (Bc / TN) threads. For each dim a thread reads TM values of Q and TN of
//   K and adds their outer product to its scores. Of P V it makes TM rows x `columns` columns, from
//   TM weights and `columns` values a key.
// Resident
//   shared     Q [Br, D] for the whole loop; K, V [Bc, D] in turn; S [Br, Bc], overwritten by P.
//              Unpadded and read in scalars. With D = 64, Br = Bc = 32, TM = TN = 4 a warp is 4
//              tile rows x 8 tile columns: 8-way bank conflicts on K, 4-way on Q and S, 2-way on V.
//              Padding is K5's step.
//   registers  O, not normalised; m and l of the thread's rows, the same in all threads of a row
//   global     nothing but the inputs and the one write of O and LSE
// Legend
//   Br, Bc query_tile, key_tile; D head_dim; TM, TN thread_rows, thread_keys; S scores; m running
//   maximum; P weights exp(S - m); l sum of exp(S - m); at: the thread's place in the tile;
//   seen: keys of the tile that each of its rows sees, always the first ones.
// Masking
//   Scores of all keys of a tile are made; keys and queries past the end are zeros. Maxima, weights
//   and sums visit `seen` keys only, so a NaN in a masked key ends in a score that nobody reads.
//   Tiles above the diagonal are not visited.
// Barriers
//   (1) all have read K, V and P of the previous tile before they are overwritten
//   (2) K, V and, the first time, Q are complete before they are read
//   (3) a row of S is complete before its maximum is taken
//   (4) all have read S before P overwrites it
//   (5) a row of P is complete before it is summed and multiplied by V
// Limits
//   fp32; head_dim to 192 where the columns fit the registers; what
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

template <int TM, int TN, int columns>
__device__ void make_tile(const ForwardArguments& a, const TilePosition& tile) {
  const Problem& problem = a.problem;
  const int Br = static_cast<int>(a.plan.query_tile);
  const int Bc = static_cast<int>(a.plan.key_tile);
  const int D = static_cast<int>(problem.head_dim);
  const RegisterTile<TM, TN, columns> at(Bc);

  const std::int64_t head = tile.head;  // of all batch * query_heads
  const std::int64_t first_query = tile.tile * Br;
  const std::int64_t query = first_query + at.row;
  const HeadRows x = head_rows(a, head / problem.query_heads, head % problem.query_heads);

  const int value_columns = ceil_div(D, columns) * columns;
  const SharedTile Q{dynamic_shared<float>(), D};
  const SharedTile K{Q.row(Br), D};
  const SharedTile V{K.row(Bc), value_columns};
  const SharedTile S{V.row(Bc), Bc};
  RegisterRows<TM, columns> rows;

  load_zeroed(x.q, first_query, Br, D, D, Q);
  const std::int64_t last_query = first_query + x.q.existing(first_query, Br) - 1;
  const std::int64_t tile_visible = problem.visible_keys(last_query);  // later queries see more

  for (std::int64_t first_key = 0; first_key < tile_visible; first_key += Bc) {
    int seen[TM];
    keys_seen_by_rows(problem, query, first_key, Bc, seen);

    __syncthreads();  // (1)
    load_zeroed(x.k, first_key, Bc, D, D, K);
    load_zeroed(x.v, first_key, Bc, D, value_columns, V);
    __syncthreads();  // (2)
    float s[TM][TN] = {};
    add_outer_products(Q.from(at.row), K.from(at.key), D, s);
    scale_scores(s, problem.scale);
    store_tile_part(s, S.from(at.row, at.key));
    __syncthreads();  // (3)
    float m_new[TM];
    row_maxima(S.from(at.row), seen, rows.m, m_new);
    __syncthreads();  // (4)
    const SharedTile P = S;
    weigh_scores<FastExp, TN>(P.from(at.row, at.key), at.key, seen, m_new);
    __syncthreads();  // (5)
    rows.template rescale<FastExp>(m_new);
    rows.add_to_sums(P.from(at.row), seen);
    if (at.column < D) {
      add_weighted_values<columns>(P.from(at.row), V.from(0, at.column), seen, rows.o);
    }
  }

  rows.template store<columns>(x.o, query, 0, at.column, D);
  if (at.key == 0) rows.store_lse(a.lse + head * problem.query_len, query, problem.query_len);
}

template <int TM, int TN, int columns, Scheduling::Value scheduling>
__global__ void __launch_bounds__(max_register_threads)
    k4_register_tile(ForwardArguments a, TileLaunch launch) {
  for_each_tile<scheduling>(a, launch,
                            [&](const TilePosition& tile) { make_tile<TM, TN, columns>(a, tile); });
}

template <int TM, int TN, int columns>
constexpr TileKernels one_tile{k4_register_tile<TM, TN, columns, Scheduling::one_tile>};
template <int TM, int TN, int columns>
constexpr TileKernels with_persistent{k4_register_tile<TM, TN, columns, Scheduling::one_tile>,
                                      k4_register_tile<TM, TN, columns, Scheduling::persistent>};
constexpr std::array variants{RegisterVariant{4, 4, 4, 1, one_tile<4, 4, 4>},
                              RegisterVariant{4, 4, 8, 1, with_persistent<4, 4, 8>},
                              RegisterVariant{4, 4, 16, 1, one_tile<4, 4, 16>},
                              RegisterVariant{2, 4, 16, 1, one_tile<2, 4, 16>},
                              RegisterVariant{4, 2, 8, 1, one_tile<4, 2, 8>},
                              RegisterVariant{8, 4, 8, 1, one_tile<8, 4, 8>},
                              RegisterVariant{8, 8, 8, 1, one_tile<8, 8, 8>}};

std::int64_t shared_floats(const Problem& problem, const Plan& plan,
                           const RegisterVariant& variant) {
  const auto [Br, Bc] = std::pair(plan.query_tile, plan.key_tile);
  return (Br + Bc) * problem.head_dim + Bc * value_stride(problem, plan, variant) + Br * Bc;
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  return why_register_tiles_do_not_fit(variants, shared_floats, problem, plan);
}

const KernelRegistration registration{
    {.name = "k4_register_tile",
     .summary = "FA2 order, TM x TN scores a thread by outer products, unpadded tiles",
     .source = "K4 [S3 kernel 4]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision = register_tile_precision,
     .plans = [](const Problem& problem) { return register_tile_plans(problem, unsupported); },
     .unsupported = unsupported,
     .workspace_bytes = tile_counter_bytes,
     .launch = [](const ForwardArguments& a,
                  Device& device) { launch_register_tiles(variants, shared_floats, a, device); }}};

}  // namespace
}  // namespace attest
