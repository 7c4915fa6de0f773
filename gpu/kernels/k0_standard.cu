// K0, standard attention [FA1 Alg. 0; S3's eager baseline; S1, S4]: three launches, and the matrix
// of scores, then weights, lies in device memory between them. The control of every fused kernel.
//
// Idea
//   (1) S = scale Q K^T, all of it: a mask saves nothing, as in the eager form of a framework.
//   (2) P = softmax(S) over the keys that a row sees and 0 elsewhere, in place; LSE. One warp has a
//       row.
//   (3) O = P V.
//   The products are tiled (tile_product.cuh): 16 x 16 threads make a tile x tile piece, R x R
//   elements each, 16 steps of the sum at a time.
// Resident
//   shared     A, B [16, tile]: both factors of a product, the summed dimension first
//   registers  R x R sums
//   global     S, overwritten by P [batch * query_heads, query_len, key_len] in the workspace
// Legend
//   R thread_rows = thread_keys; tile 16 R = query_tile = key_tile; D head_dim.
// Masking
//   S is masked when it is read. P V stops at the last key that any row of the tile sees, and in
//   the slice where rows differ a thread adds only products of keys that its row sees: 0 times NaN
//   is not 0. Rows past a tensor's end are 0 in shared memory and not stored.
// Barriers
//   (1) A and B are complete before they are read
//   (2) all have read them before the next slice overwrites them
//   The softmax has none: a row belongs to one warp.
// Limits
//   fp32; a score matrix of at most 16 GiB; what why_tiles_do_not_fit() says.
#include <algorithm>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/tile_launch.cuh"
#include "gpu/primitives/tile_plan.hpp"
#include "gpu/primitives/tile_product.cuh"

namespace attest {
namespace {

constexpr int warp = 32;
constexpr int softmax_warps = 4;  // of a block
constexpr std::int64_t max_matrix_bytes = std::int64_t{1} << 34;

/// Scores, later weights, of one head.
__device__ RowView<float> matrix_of(const ForwardArguments& a, std::int64_t head) {
  const Problem& problem = a.problem;
  return {static_cast<float*>(a.workspace) + head * problem.query_len * problem.key_len,
          problem.key_len, problem.query_len};
}

template <int R>
__global__ void __launch_bounds__(product_threads, R == 4 ? 3 : 2) k0_scores(ForwardArguments a) {
  constexpr int tile = ProductEdge<R>::tile;
  const Problem& problem = a.problem;
  const std::int64_t key_tiles = ceil_div(problem.key_len, tile);
  const std::int64_t query_tiles = ceil_div(problem.query_len, tile);
  const std::int64_t head = blockIdx.x / (key_tiles * query_tiles);
  const std::int64_t first_query = blockIdx.x / key_tiles % query_tiles * tile;
  const std::int64_t first_key = blockIdx.x % key_tiles * tile;
  const HeadRows x = head_rows(a, head / problem.query_heads, head % problem.query_heads);

  float* const A = dynamic_shared<float>();
  float* const B = A + product_slice * ProductEdge<R>::pitch;
  const int all[R] = {};
  float s[R][R] = {};
  for (std::int64_t c = 0; c < problem.head_dim; c += product_slice) {
    load_transposed<R>(x.q, first_query, c, problem.head_dim, A);
    load_transposed<R>(x.k, first_key, c, problem.head_dim, B);
    __syncthreads();  // (1)
    add_products<R, false>(A, B, all, s);
    __syncthreads();  // (2)
  }
  store_product<R>(matrix_of(a, head), first_query, first_key, problem.key_len, problem.scale, s);
}

__global__ void __launch_bounds__(softmax_warps* warp) k0_softmax(ForwardArguments a) {
  const Problem& problem = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const std::int64_t n = std::int64_t{blockIdx.x} * softmax_warps + threadIdx.x / warp;
  if (n >= problem.rows()) return;  // the whole warp
  float* const s = static_cast<float*>(a.workspace) + n * problem.key_len;
  const std::int64_t visible = problem.visible_keys(n % problem.query_len);

  float m = -INFINITY;
  for (std::int64_t k = lane; k < visible; k += warp) m = fmaxf(m, s[k]);
  for (int step = warp / 2; step > 0; step /= 2) m = fmaxf(m, __shfl_xor_sync(~0U, m, step));
  float l = 0.0F;
  for (std::int64_t k = lane; k < visible; k += warp) l += exp_below<LibraryExp>(s[k], m);
  for (int step = warp / 2; step > 0; step /= 2) l += __shfl_xor_sync(~0U, l, step);
  const float divisor = divisor_of(l);
  float* const p = s;
  for (std::int64_t k = lane; k < problem.key_len; k += warp) {
    p[k] = k < visible ? exp_below<LibraryExp>(s[k], m) / divisor : 0.0F;
  }
  if (lane == 0) a.lse[n] = log_sum_exp(m, l);
}

template <int R>
__global__ void __launch_bounds__(product_threads, R == 4 ? 3 : 2) k0_values(ForwardArguments a) {
  constexpr int tile = ProductEdge<R>::tile;
  const Problem& problem = a.problem;
  const std::int64_t D = problem.head_dim;
  const std::int64_t column_tiles = ceil_div(D, tile);
  const std::int64_t query_tiles = ceil_div(problem.query_len, tile);
  const std::int64_t head = blockIdx.x / (column_tiles * query_tiles);
  const std::int64_t first_query = blockIdx.x / column_tiles % query_tiles * tile;
  const std::int64_t first_column = blockIdx.x % column_tiles * tile;
  const HeadRows x = head_rows(a, head / problem.query_heads, head % problem.query_heads);
  const RowView<const float> p = matrix_of(a, head).as_const();
  const std::int64_t rows = x.q.existing(first_query, tile);
  const std::int64_t all_see = problem.visible_keys(first_query);  // later queries see more
  const std::int64_t any_sees = problem.visible_keys(first_query + rows - 1);

  float* const A = dynamic_shared<float>();
  float* const B = A + product_slice * ProductEdge<R>::pitch;
  float o[R][R] = {};
  for (std::int64_t first_key = 0; first_key < any_sees; first_key += product_slice) {
    load_transposed<R>(p, first_query, first_key, problem.key_len, A);
    for (int e = static_cast<int>(threadIdx.x); e < tile * product_slice; e += product_threads) {
      const int k = e / tile, c = e % tile;
      const bool exists = first_key + k < x.v.count && first_column + c < D;
      B[k * ProductEdge<R>::pitch + c] = exists ? x.v.row(first_key + k)[first_column + c] : 0.0F;
    }
    __syncthreads();  // (1)
    int seen[R];
    if (first_key + product_slice <= all_see) {
      add_products<R, false>(A, B, seen, o);
    } else {
#pragma unroll
      for (int i = 0; i < R; ++i) {
        const int row = ProductEdge<R>::index(static_cast<int>(threadIdx.x) / product_side, i);
        seen[i] = row < rows
                      ? keys_seen(problem.visible_keys(first_query + row), first_key, product_slice)
                      : 0;
      }
      add_products<R, true>(A, B, seen, o);
    }
    __syncthreads();  // (2)
  }
  store_product<R>(x.o, first_query, first_column, D, 1.0F, o);
}

/// Blocks of the launches.
struct Grids {
  std::int64_t scores, softmax, values;
};
Grids grids_of(const Problem& problem, std::int64_t tile) {
  const std::int64_t heads = problem.batch * problem.query_heads;
  const std::int64_t query_tiles = heads * ceil_div(problem.query_len, tile);
  return {query_tiles * ceil_div(problem.key_len, tile), ceil_div(problem.rows(), softmax_warps),
          query_tiles * ceil_div(problem.head_dim, tile)};
}

TileNeeds needs_of(const Plan& plan, std::int64_t blocks) {
  return {.threads = product_threads,
          .shared_floats = product_shared_floats(plan.query_tile),
          .grid_x = blocks};
}

std::size_t matrix_bytes(const Problem& problem, const Plan& /*plan*/) {
  return static_cast<std::size_t>(problem.rows() * problem.key_len) * sizeof(float);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const std::int64_t R = plan.thread_rows;
  if ((R != 4 && R != 8) || plan.thread_keys != R || plan.query_tile != product_side * R ||
      plan.key_tile != product_side * R) {
    return "tiles are " + std::to_string(plan.query_tile) + " x " + std::to_string(plan.key_tile) +
           ", " + std::to_string(R) + " x " + std::to_string(plan.thread_keys) +
           " a thread; allowed: 64 x 64, 4 x 4 and 128 x 128, 8 x 8";
  }
  const Grids grids = grids_of(problem, plan.query_tile);
  if (auto reason = why_tiles_do_not_fit(problem, plan, [&] {
        return needs_of(plan, std::max({grids.scores, grids.softmax, grids.values}));
      })) {
    return reason;
  }
  if (problem.key_len > max_matrix_bytes / 4 / problem.rows()) {
    return "the score matrix has " + std::to_string(problem.rows()) + " x " +
           std::to_string(problem.key_len) + " elements; allowed: up to 16 GiB of them";
  }
  return std::nullopt;
}

void run(const ForwardArguments& a, Device& device) {
  const bool is_small = a.plan.thread_rows == 4;
  const Grids grids = grids_of(a.problem, a.plan.query_tile);
  const auto launch_on = [&](std::int64_t blocks, void (*kernel)(ForwardArguments)) {
    launch_tiles(kernel, needs_of(a.plan, blocks), a, device);
  };
  if (a.problem.key_len > 0) launch_on(grids.scores, is_small ? k0_scores<4> : k0_scores<8>);
  launch(k0_softmax, dim3(static_cast<unsigned>(grids.softmax)), dim3(softmax_warps * warp), 0,
         device, a);
  launch_on(grids.values, is_small ? k0_values<4> : k0_values<8>);
}

PrecisionPlan precision(const Problem& problem, const Plan& /*plan*/) {
  return {
      .scale_after_dot = true,
      .exp = library_expf(),
      .rescale = Rescale::none,
      .normaliser_chain = ceil_div(problem.key_len, warp) + 5,  // a lane's own, then 5 exchanges
      .division_error = 0x1p-24,                                // one IEEE division a weight
      .log_error = 0x1p-23};                                    // logf: 1 ulp
}

std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> all;
  for (const std::int64_t R : {4, 8}) {
    const Plan plan{.query_tile = product_side * R,
                    .key_tile = product_side * R,
                    .thread_rows = R,
                    .thread_keys = R};
    if (!unsupported(problem, plan)) all.push_back(plan);
  }
  return all;
}

const KernelRegistration registration{
    {.name = "k0_standard",
     .summary = "three launches, scores and weights in device memory: the unfused control",
     .source = "K0, F3 [FA1 Alg. 0]",
     .executor = this_executor,
     .dataflow = Dataflow::standard,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes = matrix_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
