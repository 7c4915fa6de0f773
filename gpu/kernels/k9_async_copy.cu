// K9, asynchronous copies [ours]: K8, and the next slice of K or V is on its way while this one is
// used.
//
// Idea
//   The slices of K and V that a key tile needs follow one another through two stages. A slice is
//   waited for, then the copy of its successor is started into the other stage (cp.async: no
//   registers, no instruction of the thread waits for memory), then it is used. K8 has a barrier
//   before and after every slice; here one serves both ends.
// Resident
//   shared     two stages of a slice, [Bc, Bk]: of K in rows of Bk + 1, of V in rows of Bk; Q
//              [Br, D] in rows of D + 1, for the whole loop; P [Br, Bc] in rows of Bc + 1. K8 has
//              one slice of each: as much.
//   registers, global
//              as K7
// Legend, Masking
//   as K7
// Barriers
//   (1) the slice of K, waited for by each thread, is complete before others read it, and the first
//       time Q is; all have read the other stage before the next copy overwrites it, and P of the
//       previous tile before it is overwritten
//   (2) the same for a slice of V; P is complete before other threads read it
// Limits
//   as K7. K is copied by 4 bytes, as its padded rows demand; V by 16 where its rows allow.
#include <array>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/register_plan.cuh"
#include "gpu/primitives/register_rows.cuh"
#include "gpu/primitives/register_tile.cuh"
#include "gpu/primitives/row_shuffle.cuh"

namespace attest {
namespace {

/// Floats of a stage: a slice of K, or one of V, whose rows may be read in vectors.
ATTEST_HOST_DEVICE constexpr std::int64_t stage_floats(std::int64_t Bc, std::int64_t Bk,
                                                       std::int64_t value_columns) {
  return ceil_div(Bc * (Bk + 1 < value_columns ? value_columns : Bk + 1), 4) * 4;
}

/// Starts the copies of a slice: what load_zeroed() does, but rows arrive at a wait. No commit
/// inside.
template <int bytes>
__device__ void start_copies(const RowView<const float>& from, std::int64_t begin, int rows,
                             int columns, const SharedTile& tile) {
  constexpr int each = bytes / static_cast<int>(sizeof(float));
  const int existing = from.existing(begin, rows);
  for_each_element(rows, columns / each, [&](int r, int n) {
    const bool exists = r < existing;
    const float* const source = exists ? from.row(begin + r) + n * each : from.first;
    AsyncCopies::copy_or_zero<bytes>(tile.row(r) + n * each, source, exists);
  });
}

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
  const int parts = ceil_div(D, Bk);  // slices of K that exist, and of V
  float* const stages = dynamic_shared<float>();
  const SharedTile Q{stages + 2 * stage_floats(Bc, Bk, value_columns), D + 1};
  const SharedTile P{Q.row(Br), Bc + 1};
  RegisterRows<TM, slices * columns> rows;

  const std::int64_t last_query = first_query + x.q.existing(first_query, Br) - 1;
  const std::int64_t tile_visible = problem.visible_keys(last_query);  // later queries see more

  // Part n of a key tile is slice n of K or slice n - parts of V. Even parts use one stage, odd
  // ones the other: a tile has 2 * parts of them.
  const auto part_tile = [&](int n) {
    float* const stage = stages + n % 2 * stage_floats(Bc, Bk, value_columns);
    return SharedTile{stage, n < parts ? Bk + 1 : value_columns};
  };
  const auto fetch = [&](std::int64_t first_key, int n) {
    if (n == 2 * parts) {
      n = 0;
      first_key += Bc;
    }
    if (first_key < tile_visible) {
      const int d = n % parts * Bk;
      const int dims = min(Bk, D - d);
      const SharedTile to = part_tile(n);
      if (n < parts) {
        start_copies<4>(columns_from(x.k, d), first_key, Bc, dims, to);
      } else {
        const auto from = columns_from(x.v, d);
        if (rows_are_vectors(from, dims)) {
          start_copies<16>(from, first_key, Bc, dims, to);
        } else {
          start_copies<4>(from, first_key, Bc, dims, to);
        }
        fill_zeros(to.from(0, dims), Bc, value_columns - dims);
      }
    }
    AsyncCopies::commit();
  };

  fetch(0, 0);
  load_widest(x.q, first_query, Br, D, D, Q);
  for (std::int64_t first_key = 0; first_key < tile_visible; first_key += Bc) {
    int seen[TM];
    keys_seen_by_rows(problem, query, first_key, Bc, seen);

    float s[TM][TN] = {};
    for (int n = 0; n < parts; ++n) {
      AsyncCopies::wait<0>();
      __syncthreads();  // (1)
      fetch(first_key, n + 1);
      const int d = n * Bk;
      add_outer_products(Q.from(at.row, d), part_tile(n).from(at.key), min(Bk, D - d), s);
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
      if (slice >= parts) break;
      AsyncCopies::wait<0>();
      __syncthreads();  // (2)
      fetch(first_key, parts + slice + 1);
      if (slice * Bk + at.column < D && at.column < Bk) {
        add_weighted_values<columns>(P.from(at.row), part_tile(parts + slice).from(0, at.column),
                                     seen, rows.o, slice * columns);
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

template <int TM, int TN, int columns, int slices, Scheduling::Value scheduling>
__global__ void __launch_bounds__(max_register_threads)
    k9_async_copy(ForwardArguments a, TileLaunch launch) {
  for_each_tile<scheduling>(
      a, launch, [&](const TilePosition& tile) { make_tile<TM, TN, columns, slices>(a, tile); });
}

template <int TM, int TN, int columns, int slices>
constexpr TileKernels one_tile{k9_async_copy<TM, TN, columns, slices, Scheduling::one_tile>};
template <int TM, int TN, int columns, int slices>
constexpr TileKernels with_persistent{
    k9_async_copy<TM, TN, columns, slices, Scheduling::one_tile>,
    k9_async_copy<TM, TN, columns, slices, Scheduling::persistent>};
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
  const std::int64_t stage = stage_floats(Bc, plan.dim_tile, value_stride(problem, plan, variant));
  return 2 * stage + Br * (problem.head_dim + 1) + Br * (Bc + 1);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  auto reason = why_register_tiles_do_not_fit(variants, shared_floats, problem, plan);
  if (reason) return reason;
  if (plan.stages != 2) return "stages is " + std::to_string(plan.stages) + "; allowed: 2";
  return why_rows_are_not_shuffled(plan);
}

const KernelRegistration registration{
    {.name = "k9_async_copy",
     .summary = "K8 with slices of K and V that arrive while the last one is used",
     .source = "K9, after K8",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .compute_capabilities = {.least = 80},
     .precision = shuffled_rows_precision,
     .plans =
         [](const Problem& problem) {
           return register_tile_plans(problem, unsupported,
                                      {.dim_tiles = {32, 16, 20}, .stages = 2});
         },
     .unsupported = unsupported,
     .workspace_bytes = tile_counter_bytes,
     .launch = [](const ForwardArguments& a,
                  Device& device) { launch_register_tiles(variants, shared_floats, a, device); }}};

}  // namespace
}  // namespace attest
