// K2, coalesced, and K2b [S3 kernel 2; FA1 Alg. 1]: K1's loops, but a block has a thread for every
// score, and all threads copy tiles together, neighbours taking neighbouring floats.
//
// Idea
//   One block a head. The outer loop holds a K and V tile, the inner one passes all queries by, so
//   O, m and l travel to global memory and back once a key tile. That traffic, and having only
//   B * H blocks, is what K3 removes. Thread t makes score (t / Bc, t % Bc) of a tile, then columns
//   t % Bc, t % Bc + Bc, ... of row t / Bc of O.
//   row_reduce: how the threads of a row find its maximum and sum, with nothing else changed.
//   shared_loop (K2): each reads the whole row, Bc loads that are broadcasts. shuffle (K2b): each
//   brings its own element, and log2(Bc) exchanges between lanes, each waiting for the last. S3
//   measured 223 and 226 ms [claims Q3.21].
// Resident
//   shared     Q, O [Br, D]; K, V [Bc, D]; S [Br, Bc], overwritten by P; m, l [Br]. Unpadded.
//   global     O, normalised after every step; m, l of all rows in the workspace. All three are
//              initialised here: they arrive holding anything, NaN too.
// Legend
//   Br, Bc query_tile, key_tile; D head_dim; S scores; tile_m maximum of the tile's scores;
//   P weights exp(S - tile_m); tile_l their sum; m, l the same of all tiles so far;
//   seen: keys of the tile that the thread's row sees, always its first ones.
// Masking
//   Rows visit only their `seen` keys: neither a masked key nor the unloaded end of a tile is ever
//   read. Pairs of tiles above the diagonal are skipped. Rows past the last query see no key.
// Barriers
//   (1) O, m and l of the head are initialised before threads read what others wrote
//   (2) Q, O, m, l and, for a new key tile, K and V are complete before they are read
//   (3) a row of S is complete before its maximum is taken: its threads may sit in two warps
//   (4) all have taken the maximum before P overwrites S
//   (5) a row of P is complete before it is summed and multiplied by V
//   (6) O is complete before it is stored in another order; all have read Q, K, V, P, m and l
//       before the next tile overwrites them; m and l reach global memory before others read them
//   From its store to its next load O needs none: a thread loads what it stored itself.
// Limits
//   fp32; shuffle needs a row within a warp: Bc a power of two up to 32; what
//   why_tiles_do_not_fit() says.
#include <algorithm>
#include <bit>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/copy.cuh"
#include "gpu/primitives/dot.cuh"
#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/row_shuffle.cuh"
#include "gpu/primitives/tile_launch.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {
namespace {

/// `combine` over `start` and the first `seen` of a row's Bc values, the same in all its threads.
/// Shuffles need all lanes of the warp here.
template <RowReduce::Value reduce, typename Combine>
__device__ float over_seen(const float* values, int col, int seen, int Bc, float start,
                           const Combine& combine) {
  if constexpr (reduce == RowReduce::shuffle) {
    return over_row(col < seen ? values[col] : start, Bc, combine);
  } else {
    float result = start;
    for (int k = 0; k < seen; ++k) result = combine(result, values[k]);
    return result;
  }
}

template <RowReduce::Value reduce>
__global__ void __launch_bounds__(max_block_threads) k2_coalesced(ForwardArguments a) {
  const Problem& problem = a.problem;
  const int Br = static_cast<int>(a.plan.query_tile);
  const int Bc = static_cast<int>(a.plan.key_tile);
  const int D = static_cast<int>(problem.head_dim);
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / Bc;
  const int col = thread % Bc;

  const std::int64_t head = blockIdx.x;  // of all batch * query_heads
  const HeadRows x = head_rows(a, head / problem.query_heads, head % problem.query_heads);
  float* const m_rows = static_cast<float*>(a.workspace) + head * problem.query_len;
  float* const l_rows = m_rows + problem.rows();

  float* const Q = dynamic_shared<float>();
  float* const K = Q + Br * D;
  float* const V = K + Bc * D;
  float* const O = V + Bc * D;
  float* const S = O + Br * D;
  float* const m = S + Br * Bc;
  float* const l = m + Br;

  fill_rows(x.o, D, 0.0F);
  for (std::int64_t n = thread; n < problem.query_len; n += blockDim.x) {
    m_rows[n] = -INFINITY;
    l_rows[n] = 0.0F;
  }
  __syncthreads();  // (1)

  const std::int64_t head_visible =
      problem.visible_keys(problem.query_len - 1);  // the last sees most
  for (std::int64_t first_key = 0; first_key < head_visible; first_key += Bc) {
    load_tile(x.k, first_key, Bc, D, K);
    load_tile(x.v, first_key, Bc, D, V);
    for (std::int64_t first_query = 0; first_query < problem.query_len; first_query += Br) {
      const int rows = x.q.existing(first_query, Br);
      if (problem.visible_keys(first_query + rows - 1) <= first_key) continue;  // for all threads
      const std::int64_t query = first_query + row;
      const int seen = row < rows ? keys_seen(problem.visible_keys(query), first_key, Bc) : 0;

      load_tile(x.q, first_query, Br, D, Q);
      load_tile(x.o.as_const(), first_query, Br, D, O);
      if (thread < rows) {
        m[thread] = m_rows[first_query + thread];
        l[thread] = l_rows[first_query + thread];
      }
      __syncthreads();  // (2)
      if (col < seen) S[row * Bc + col] = problem.scale * dot(Q + row * D, K + col * D, 1, D);
      __syncthreads();  // (3)
      const float tile_m = over_seen<reduce>(S + row * Bc, col, seen, Bc, -INFINITY,
                                             [](float x, float y) { return fmaxf(x, y); });
      __syncthreads();  // (4)
      float* const P = S;
      if (col < seen) P[row * Bc + col] = exp_below<FastExp>(S[row * Bc + col], tile_m);
      __syncthreads();  // (5)
      const float tile_l = over_seen<reduce>(P + row * Bc, col, seen, Bc, 0.0F,
                                             [](float x, float y) { return x + y; });
      if (seen > 0) {
        const NormalisedStep step = normalised_step<FastExp>(m[row], l[row], tile_m, tile_l);
        for (int c = col; c < D; c += Bc) {
          O[row * D + c] = step.apply(O[row * D + c], dot(P + row * Bc, V + c, D, seen));
        }
        if (col == 0) {
          m_rows[query] = step.m;
          l_rows[query] = step.l;
        }
      }
      __syncthreads();  // (6)
      store_tile(O, x.o, first_query, Br, D);
    }
  }

  for (std::int64_t n = thread; n < problem.query_len; n += blockDim.x) {
    a.lse[head * problem.query_len + n] = log_sum_exp(m_rows[n], l_rows[n]);
  }
}

TileNeeds needs_of(const Problem& problem, const Plan& plan) {
  const auto [Br, Bc] = std::pair(plan.query_tile, plan.key_tile);
  return {.threads = Br * Bc,
          .shared_floats = 2 * (Br + Bc) * problem.head_dim + Br * Bc + 2 * Br,
          .grid_x = problem.batch * problem.query_heads};
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  if (auto reason = why_tiles_do_not_fit(problem, plan, [&] { return needs_of(problem, plan); })) {
    return reason;
  }
  const auto lanes = static_cast<std::uint64_t>(plan.key_tile);
  if (plan.row_reduce == RowReduce::shuffle && (lanes > 32 || !std::has_single_bit(lanes))) {
    return "row_reduce is shuffle and key_tile " + std::to_string(plan.key_tile) +
           "; allowed: powers of two up to 32, so that a row lies in one warp";
  }
  return std::nullopt;
}

std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> all = tile_plans(problem, unsupported);
  for (Plan plan : tile_plans(problem, unsupported)) {
    plan.row_reduce = RowReduce::shuffle;
    if (!unsupported(problem, plan)) all.push_back(plan);
  }
  return all;
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile));
  const bool is_tree = plan.row_reduce == RowReduce::shuffle;
  return {.scale_after_dot = true,
          .exp = fast_expf(),
          .rescale = Rescale::normalised_steps,
          .blocks = tiles,
          .normaliser_chain =
              is_tree ? std::countr_zero(static_cast<std::uint64_t>(plan.key_tile)) + tiles
                      : tiled_normaliser_chain(problem, plan),
          .division_error = 0x1p-24,  // one IEEE division a step
          .log_error = 0x1p-23};      // logf: 1 ulp
}

const KernelRegistration registration{
    {.name = "k2_coalesced",
     .summary = "FA1 order, one block a head, one thread a score, coalesced tile copies",
     .source = "K2, K2b [S3 kernel 2; FA1 Alg. 1]",
     .executor = this_executor,
     .dataflow = Dataflow::keys_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes = row_state_bytes,
     .launch = [](const ForwardArguments& a, Device& device) {
       const bool shuffles = a.plan.row_reduce == RowReduce::shuffle;
       launch_tiles(
           shuffles ? k2_coalesced<RowReduce::shuffle> : k2_coalesced<RowReduce::shared_loop>,
           needs_of(a.problem, a.plan), a, device);
     }}};

}  // namespace
}  // namespace attest
