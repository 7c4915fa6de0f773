// K1, naive [S3 kernel 1; FA1 Alg. 1]: the paper's loops with one thread a row and nothing done for
// the hardware. The bottom of the ladder: right, and slow for reasons that K2 to K6 remove.
//
// Idea
//   One block of Br threads a (batch, head). The outer loop holds a K and V tile; for it, thread t
//   handles queries t, t + Br, ... all alone: scores, maximum, sum, and the update of its row of O
//   in global memory, column by column. A thread copies whole rows, so neighbouring lanes read
//   D floats apart: uncoalesced.
// Resident
//   shared     Q [Br, D]; K, V [Bc, D]; S [Br, Bc], overwritten by P. Unpadded.
//   global     O, normalised after every step; m, l of all rows in the workspace. All three are
//              initialised here: they arrive holding anything, NaN too.
// Legend
//   Br, Bc query_tile, key_tile; D head_dim; S scores; tile_m maximum of the tile's scores;
//   P weights exp(S - tile_m); tile_l their sum; m, l the same of all tiles so far;
//   seen: keys of the tile that the row sees, its first ones; s, p, q, o: the thread's own row.
// Masking
//   Rows visit only their `seen` keys: neither a masked key nor the unloaded end of a tile is ever
//   read. Tiles above the diagonal are skipped, row by row and, at the end, for the whole block.
// Barriers
//   (1) K and V are complete before they are read
//   (2) all have read them before the next tile overwrites them
//   Rows of Q, S, O, m and l belong to one thread from first to last and need none.
// Limits
//   fp32; what why_tiles_do_not_fit() says. S3 needs Br = Bc; here a thread copies several rows.
#include <algorithm>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/dot.cuh"
#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/tile_launch.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {
namespace {

__device__ __forceinline__ void copy_row(const float* from, int columns, float* to) {
  for (int c = 0; c < columns; ++c) to[c] = from[c];
}

__global__ void k1_naive(ForwardArguments a) {
  const Problem& problem = a.problem;
  const int Br = static_cast<int>(a.plan.query_tile);
  const int Bc = static_cast<int>(a.plan.key_tile);
  const int D = static_cast<int>(problem.head_dim);
  const int thread = static_cast<int>(threadIdx.x);

  const HeadRows x = head_rows(a, blockIdx.x, blockIdx.y);
  const std::int64_t head = blockIdx.x * problem.query_heads + blockIdx.y;
  float* const m_rows = static_cast<float*>(a.workspace) + head * problem.query_len;
  float* const l_rows = m_rows + problem.rows();

  float* const Q = dynamic_shared<float>();
  float* const K = Q + Br * D;
  float* const V = K + Bc * D;
  float* const S = V + Bc * D;
  float* const q = Q + thread * D;
  float* const s = S + thread * Bc;

  for (std::int64_t query = thread; query < problem.query_len; query += Br) {
    m_rows[query] = -INFINITY;
    l_rows[query] = 0.0F;
    for (int c = 0; c < D; ++c) x.o.row(query)[c] = 0.0F;
  }

  const std::int64_t head_visible =
      problem.visible_keys(problem.query_len - 1);  // the last sees most
  for (std::int64_t first_key = 0; first_key < head_visible; first_key += Bc) {
    for (int k = thread; k < x.k.existing(first_key, Bc); k += Br) {
      copy_row(x.k.row(first_key + k), D, K + k * D);
      copy_row(x.v.row(first_key + k), D, V + k * D);
    }
    __syncthreads();  // (1)

    for (std::int64_t query = thread; query < problem.query_len; query += Br) {
      const int seen = keys_seen(problem.visible_keys(query), first_key, Bc);
      if (seen == 0) continue;
      copy_row(x.q.row(query), D, q);

      float tile_m = -INFINITY;
      for (int k = 0; k < seen; ++k) {
        s[k] = problem.scale * dot(q, K + k * D, 1, D);
        tile_m = fmaxf(tile_m, s[k]);
      }
      float tile_l = 0.0F;
      float* const p = s;
      for (int k = 0; k < seen; ++k) {
        p[k] = exp_below<LibraryExp>(s[k], tile_m);
        tile_l += p[k];
      }
      const NormalisedStep step =
          normalised_step<LibraryExp>(m_rows[query], l_rows[query], tile_m, tile_l);
      float* const o = x.o.row(query);
      for (int c = 0; c < D; ++c) o[c] = step.apply(o[c], dot(p, V + c, D, seen));
      m_rows[query] = step.m;
      l_rows[query] = step.l;
    }
    __syncthreads();  // (2)
  }

  for (std::int64_t query = thread; query < problem.query_len; query += Br) {
    a.lse[head * problem.query_len + query] = log_sum_exp(m_rows[query], l_rows[query]);
  }
}

TileNeeds needs_of(const Problem& problem, const Plan& plan) {
  const auto [Br, Bc] = std::pair(plan.query_tile, plan.key_tile);
  return {.threads = Br,
          .shared_floats = (Br + 2 * Bc) * problem.head_dim + Br * Bc,
          .grid_x = problem.batch,
          .grid_y = problem.query_heads};
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  return why_tiles_do_not_fit(problem, plan, [&] { return needs_of(problem, plan); });
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  return {.scale_after_dot = true,
          .exp = library_expf(),
          .rescale = Rescale::normalised_steps,
          .blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile)),
          .normaliser_chain = tiled_normaliser_chain(problem, plan),
          .division_error = 0x1p-24,  // one IEEE division a step
          .log_error = 0x1p-23};      // logf: 1 ulp
}

const KernelRegistration registration{
    {.name = "k1_naive",
     .summary = "FA1 order, one block a head, one thread a row, O updated in global memory",
     .source = "K1 [S3 kernel 1; FA1 Alg. 1]",
     .executor = this_executor,
     .dataflow = Dataflow::keys_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision = precision,
     .plans = [](const Problem& problem) { return tile_plans(problem, unsupported); },
     .unsupported = unsupported,
     .workspace_bytes = row_state_bytes,
     .launch =
         [](const ForwardArguments& a, Device& device) {
           launch_tiles(k1_naive, needs_of(a.problem, a.plan), a, device);
         }}};

}  // namespace
}  // namespace attest
