// K2, coalesced [S3 kernel 2; FA1 Alg. 1]: K1's loops, but a block has a thread for every score,
// and all threads copy tiles together, neighbours taking neighbouring floats.
//
// Idea
//   One block a head. The outer loop holds a K and V tile, the inner one passes all queries by, so
//   O, m and l travel to global memory and back once a key tile. That traffic, and having only
//   B * H blocks, is what K3 removes. Thread t makes score (t / Bc, t % Bc) of a tile, then columns
//   t % Bc, t % Bc + Bc, ... of row t / Bc of O.
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
//   fp32; what why_tiles_do_not_fit() says.
#include <algorithm>

#include "core/kernel.hpp"
#include "core/registry.hpp"
#include "gpu/primitives/copy.cuh"
#include "gpu/primitives/dot.cuh"
#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/tile_launch.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {
namespace {

__global__ void __launch_bounds__(max_block_threads) k2_coalesced(Arguments a) {
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
      float tile_m = -INFINITY;
      for (int k = 0; k < seen; ++k) tile_m = fmaxf(tile_m, S[row * Bc + k]);
      __syncthreads();  // (4)
      float* const P = S;
      if (col < seen) P[row * Bc + col] = exp_below<FastExp>(S[row * Bc + col], tile_m);
      __syncthreads();  // (5)
      if (seen > 0) {
        float tile_l = 0.0F;
        for (int k = 0; k < seen; ++k) tile_l += P[row * Bc + k];
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
  return why_tiles_do_not_fit(problem, plan, [&] { return needs_of(problem, plan); });
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  return {.scale_after_dot = true,
          .exp = fast_expf(),
          .rescale = Rescale::normalised_steps,
          .blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile)),
          .normaliser_chain = tiled_normaliser_chain(problem, plan),
          .division_error = 0x1p-24,  // one IEEE division a step
          .log_error = 0x1p-23};      // logf: 1 ulp
}

const KernelRegistration registration{
    {.name = "k2_coalesced",
     .summary = "FA1 order, one block a head, one thread a score, coalesced tile copies",
     .source = "K2 [S3 kernel 2; FA1 Alg. 1]",
     .executor = this_executor,
     .dataflow = Dataflow::keys_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision = precision,
     .plans = [](const Problem& problem) { return tile_plans(problem, unsupported); },
     .unsupported = unsupported,
     .workspace_bytes = row_state_bytes,
     .launch =
         [](const Arguments& a, Device& device) {
           launch_tiles(k2_coalesced, needs_of(a.problem, a.plan), a, device);
         }}};

}  // namespace
}  // namespace attest
