// K5, padded tiles [S3 kernel 5]: K4 with rows of K and S one float apart from a power of two, and
// 128-bit loads from global memory.
//
// Idea
//   As K4. Threads of a warp that read the same dim of different keys hit one bank when rows of K
//   are 64 floats apart, and different banks when they are 65 apart; the same for rows of S. Four
//   floats that lie side by side in global memory come by one instruction. They are written to
//   shared memory one by one: rows of 65 floats do not start at multiples of 16 bytes.
// Resident
//   shared     Q [Br, D] for the whole loop; K [Bc, D] in rows of D + 1 and V [Bc, D] in turn;
//              S [Br, Bc] in rows of Bc + 1, overwritten by P. With D = 64, Br = Bc = 32,
//              TM = TN = 4: reads of K and S without conflicts; of Q still 4-way (K8's step), of V
//              2-way (K6's). Writes are up to 4-way: neighbours write four floats apart. Each value
//              is written once or twice and read 8 times or more.
//   registers  O, not normalised; m and l of the thread's rows, the same in all threads of a row
//   global     nothing but the inputs and the one write of O and LSE
// Legend, Masking, Barriers
//   as K4
// Limits
//   fp32; rows that start at no multiple of 16 bytes, or whose length is none, are read in scalars;
//   head_dim to 192 where the columns fit the registers; what why_register_tiles_do_not_fit() says.
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
  const SharedTile K{Q.row(Br), D + 1};
  const SharedTile V{K.row(Bc), value_columns};
  const SharedTile S{V.row(Bc), Bc + 1};
  RegisterRows<TM, columns> rows;

  load_widest(x.q, first_query, Br, D, D, Q);
  const std::int64_t last_query = first_query + x.q.existing(first_query, Br) - 1;
  const std::int64_t tile_visible = problem.visible_keys(last_query);  // later queries see more

  for (std::int64_t first_key = 0; first_key < tile_visible; first_key += Bc) {
    int seen[TM];
    keys_seen_by_rows(problem, query, first_key, Bc, seen);

    __syncthreads();  // (1)
    load_widest(x.k, first_key, Bc, D, D, K);
    load_widest(x.v, first_key, Bc, D, value_columns, V);
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
    k5_padded_tiles(ForwardArguments a, TileLaunch launch) {
  for_each_tile<scheduling>(a, launch,
                            [&](const TilePosition& tile) { make_tile<TM, TN, columns>(a, tile); });
}

template <int TM, int TN, int columns>
constexpr TileKernels one_tile{k5_padded_tiles<TM, TN, columns, Scheduling::one_tile>};
template <int TM, int TN, int columns>
constexpr TileKernels with_persistent{k5_padded_tiles<TM, TN, columns, Scheduling::one_tile>,
                                      k5_padded_tiles<TM, TN, columns, Scheduling::persistent>};
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
  const std::int64_t D = problem.head_dim;
  return Br * D + Bc * (D + 1) + Bc * value_stride(problem, plan, variant) + Br * (Bc + 1);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  return why_register_tiles_do_not_fit(variants, shared_floats, problem, plan);
}

const KernelRegistration registration{
    {.name = "k5_padded_tiles",
     .summary = "K4 with padded K and S, and 128-bit loads from global memory",
     .source = "K5 [S3 kernel 5]",
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
