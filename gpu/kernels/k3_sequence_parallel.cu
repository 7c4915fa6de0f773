// K3, sequence parallel [S3 kernel 3; FA2 Alg. 1]: a block makes one tile of O, so that a single
// long head fills the GPU.
//
// Idea
//   The loop over keys is inside the block: O stays there until it is finished and is written once.
//   Thread t makes score (t / Bc, t % Bc) of a tile, then columns t % Bc, t % Bc + Bc, ... of row
//   t / Bc of O. Tiles are independent, so they may be made in any grid order, and by persistent
//   blocks.
// Resident
//   shared     Q [Br, D] for the whole loop; K, V [Bc, D] in turn; S [Br, Bc], overwritten by P;
//              m, l [Br]. Unpadded: threads of a warp read rows of K that are D floats apart, and
//              for D = 64 all of them hit one bank. Padding is K5's step.
//   registers  O, not normalised
//   global     nothing but the inputs and the one write of O and LSE
// Legend
//   Br, Bc query_tile, key_tile; D head_dim; S scores; m running maximum; P weights exp(S - m);
//   l sum of exp(S - m); seen: keys of the tile that the thread's row sees, always its first ones.
// Masking
//   Rows visit only their `seen` keys, so neither a masked key nor the unloaded end of a tile is
//   ever read. Tiles above the diagonal are not visited. Rows past the last query see no key.
// Barriers, besides those between the tiles of a persistent block (for_each_tile)
//   (1) all have read K, V and P of the previous tile before they are overwritten
//   (2) K, V and, the first time, Q, m and l are complete before they are read
//   (3) a row of S is complete before its maximum is taken: its threads may sit in two warps
//   (4) all have read S and the old m before P and the new m overwrite them
//   (5) a row of P is complete before it is summed and multiplied by V
//   (6) l and m are complete before the whole row reads them
// Limits
//   fp32; at most 16 columns of O a thread; what why_tiles_do_not_fit() says.
#include <algorithm>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/copy.cuh"
#include "gpu/primitives/dot.cuh"
#include "gpu/primitives/grid_order.cuh"
#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {
namespace {

constexpr int max_columns = 16;

template <int columns>
__device__ void make_tile(const ForwardArguments& a, const TilePosition& at) {
  const Problem& problem = a.problem;
  const int Br = static_cast<int>(a.plan.query_tile);
  const int Bc = static_cast<int>(a.plan.key_tile);
  const int D = static_cast<int>(problem.head_dim);
  const int row = static_cast<int>(threadIdx.x) / Bc;
  const int col = static_cast<int>(threadIdx.x) % Bc;

  const std::int64_t head = at.head;  // of all batch * query_heads
  const std::int64_t first_query = at.tile * Br;
  const std::int64_t query = first_query + row;
  const HeadRows x = head_rows(a, head / problem.query_heads, head % problem.query_heads);

  float* const Q = dynamic_shared<float>();
  float* const K = Q + Br * D;
  float* const V = K + Bc * D;
  float* const S = V + Bc * D;
  float* const m = S + Br * Bc;
  float* const l = m + Br;
  float o[columns] = {};

  load_tile(x.q, first_query, Br, D, Q);
  if (col == 0) {
    m[row] = -INFINITY;
    l[row] = 0.0F;
  }
  const bool exists = query < problem.query_len;
  const std::int64_t visible = exists ? problem.visible_keys(query) : 0;
  const std::int64_t last_query = first_query + x.q.existing(first_query, Br) - 1;
  const std::int64_t tile_visible = problem.visible_keys(last_query);  // later queries see more

  for (std::int64_t first_key = 0; first_key < tile_visible; first_key += Bc) {
    const int seen = keys_seen(visible, first_key, Bc);

    __syncthreads();  // (1)
    load_tile(x.k, first_key, Bc, D, K);
    load_tile(x.v, first_key, Bc, D, V);
    __syncthreads();  // (2)
    if (col < seen) S[row * Bc + col] = problem.scale * dot(Q + row * D, K + col * D, 1, D);
    __syncthreads();  // (3)
    const float m_old = m[row];
    float m_new = m_old;
    for (int k = 0; k < seen; ++k) m_new = fmaxf(m_new, S[row * Bc + k]);
    __syncthreads();  // (4)
    float* const P = S;
    if (col < seen) P[row * Bc + col] = exp_below<FastExp>(S[row * Bc + col], m_new);
    if (col == 0) m[row] = m_new;
    __syncthreads();  // (5)
    const float rescale = exp_below<FastExp>(m_old, m_new);
    if (col == 0) {
      float tile_sum = 0.0F;
      for (int k = 0; k < seen; ++k) tile_sum += P[row * Bc + k];
      l[row] = rescale * l[row] + tile_sum;
    }
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      const int c = col + i * Bc;
      if (c < D) o[i] = dot(P + row * Bc, V + c, D, seen, rescale * o[i]);
    }
  }

  __syncthreads();  // (6)
  if (!exists) return;
  const float divisor = divisor_of(l[row]);
#pragma unroll
  for (int i = 0; i < columns; ++i) {
    const int c = col + i * Bc;
    if (c < D) x.o.row(query)[c] = o[i] / divisor;
  }
  if (col == 0) a.lse[head * problem.query_len + query] = log_sum_exp(m[row], l[row]);
}

/// Two blocks of 1,024 threads on a multiprocessor where a thread can do with 32 registers; the
/// compiler does not aim for that by itself. 0: no wish.
constexpr int min_blocks(int columns) {
  return columns <= 2 ? 2 : 0;
}

template <int columns, Scheduling::Value scheduling>
__global__ void __launch_bounds__(max_block_threads, min_blocks(columns))
    k3_sequence_parallel(ForwardArguments a, TileLaunch launch) {
  for_each_tile<scheduling>(a, launch, [&](const TilePosition& at) { make_tile<columns>(a, at); });
}

template <int columns>
constexpr TileKernels kernels{k3_sequence_parallel<columns, Scheduling::one_tile>,
                              k3_sequence_parallel<columns, Scheduling::persistent>};

TileNeeds needs_of(const Problem& problem, const Plan& plan) {
  const auto [Br, Bc] = std::pair(plan.query_tile, plan.key_tile);
  const BlockGrid grid = block_grid(problem, plan);
  return {.threads = Br * Bc,
          .shared_floats = (Br + 2 * Bc) * problem.head_dim + Br * Bc + 2 * Br,
          .grid_x = grid.x,
          .grid_y = grid.y};
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  if (auto reason = why_tiles_do_not_fit(problem, plan, [&] { return needs_of(problem, plan); })) {
    return reason;
  }
  if (ceil_div(problem.head_dim, plan.key_tile) > max_columns) {
    return "key_tile is " + std::to_string(plan.key_tile) + "; allowed: at least head_dim / 16";
  }
  return why_order_does_not_fit(plan);
}

void run(const ForwardArguments& a, Device& device) {
  const std::int64_t columns = ceil_div(a.problem.head_dim, a.plan.key_tile);
  const TileKernels& kernel = columns <= 1   ? kernels<1>
                              : columns <= 2 ? kernels<2>
                              : columns <= 4 ? kernels<4>
                              : columns <= 8 ? kernels<8>
                                             : kernels<max_columns>;
  launch_output_tiles(kernel, needs_of(a.problem, a.plan), a, device);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  return {.scale_after_dot = true,
          .exp = fast_expf(),
          .rescale = Rescale::deferred,
          .blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile)),
          .normaliser_chain = tiled_normaliser_chain(problem, plan),
          .division_error = 0x1p-24,  // one IEEE division
          .log_error = 0x1p-23};      // logf: 1 ulp
}

const KernelRegistration registration{
    {.name = "k3_sequence_parallel",
     .summary = "FA2 order, one block an output tile, one thread a score, O in registers",
     .source = "K3 [S3 kernel 3; FA2 Alg. 1]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision = precision,
     .plans =
         [](const Problem& problem) {
           return with_grid_orders(tile_plans(problem, unsupported), problem, unsupported);
         },
     .unsupported = unsupported,
     .workspace_bytes = tile_counter_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
