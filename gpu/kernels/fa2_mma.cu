// FA2 on tensor cores [FA2 Alg. 1; T1 to T3]: 16-bit inputs, mma.sync of sm_80 and up, everything
// between the two products in registers.
//
// Idea
//   A block of `warps` warps makes a tile of O; each warp has Br / warps rows of it, 16 or 32, for
//   itself, so warps never exchange anything. K and V arrive by asynchronous copies, `stages` tiles
//   in flight or in use. Scores S = Q K^T leave the tensor cores in fp32; row maximum and sum are
//   found by two exchanges among the four lanes of a row; P = exp2(S - m), rounded to 16 bits, is
//   already where the next product wants its left operand: P never touches shared memory.
// Resident
//   shared     Q [Br, D]; K, V [stages, Bc, D], swizzled (swizzled_tile.cuh). D is head_dim rounded
//              up to 32, 64 or 128; the columns between are zeros.
//   registers  S and O, fragments of the tensor cores; m, l of the rows
//   global     nothing but the inputs and the one write of O and LSE
// Legend
//   Br, Bc query_tile, key_tile; S scores times log2(e); m running maximum of S; P weights
//   exp2(S - m); l sum of exp2(S - m), before P is rounded; g, t: lane = 4 g + t.
// Masking
//   Only tiles that hold a key some row does not see compare keys with rows; there S becomes -inf.
//   Rows and keys past the end are zeros. P of a hidden key is 0 and multiplies V: a hidden NaN in
//   a tile that another row of the warp sees does reach the row (ignores_hidden_nan is false).
// Barriers, besides those between the tiles of a persistent block (for_each_tile)
//   (1) the tile of this step has arrived, for all threads
//   (2) all have read the tile before the copies of a later step overwrite it
// Limits
//   fp16, bf16; head_dim up to 128; what its Plans offer; persistent blocks with the first of them.
//   Arithmetic: hopper().
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/kernel.hpp"
#include "core/registry.hpp"
#include "gpu/primitives/grid_order.cuh"
#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/swizzled_tile.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {
namespace {

template <typename T>
__device__ unsigned packed(float low, float high) {
  const T pair[2] = {T(low), T(high)};
  unsigned bits;
  memcpy(&bits, pair, sizeof bits);
  return bits;
}

/// Maximum or sum over the four lanes that hold a row.
template <typename Combine>
__device__ float over_row(float x, const Combine& combine) {
  x = combine(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return combine(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

template <typename T, int D, int Br, int Bc, int warps, int stages>
struct Fa2Tile {
  static_assert(stages >= 2, "the next tile arrives while this one is in use");
  static constexpr int row_tiles = Br / (16 * warps);  // of 16 rows, a warp's
  using Tile = SwizzledTile<T, D>;

  static constexpr std::int64_t shared_bytes =
      std::int64_t{Br + 2 * stages * Bc} * D * static_cast<std::int64_t>(sizeof(T));

  static __device__ void make(const Arguments& a, const TilePosition& at) {
    const Problem& problem = a.problem;
    const int columns = static_cast<int>(problem.head_dim);
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const int first_row = static_cast<int>(threadIdx.x) / 32 * (16 * row_tiles);  // of the warp
    const std::int64_t first_query = at.tile * Br;
    const auto x = head_rows<T>(a, at.head / problem.query_heads, at.head % problem.query_heads);
    const auto width = [&](const RowView<const T>& rows) {
      return widest_copy(rows.first, rows.stride * 2, columns * 2);
    };
    const int q_width = width(x.q), k_width = width(x.k), v_width = width(x.v);

    T* const shared = dynamic_shared<T>();
    const Tile Q{shared};
    const auto K = [&](std::int64_t step) {
      return Tile{shared + (Br + static_cast<int>(step % stages) * 2 * Bc) * D};
    };
    const auto V = [&](std::int64_t step) { return Tile{K(step).first + Bc * D}; };

    const std::int64_t last_query = first_query + x.q.existing(first_query, Br) - 1;
    const std::int64_t steps = ceil_div(problem.visible_keys(last_query), Bc);
    const std::int64_t all_see = problem.visible_keys(first_query);  // the first row sees fewest

    float o[row_tiles][D / 8][4] = {};
    float m[row_tiles][2], l[row_tiles][2];
    std::int64_t visible[row_tiles][2];
    for (int i = 0; i < row_tiles; ++i) {
      for (int h = 0; h < 2; ++h) {
        const std::int64_t query = first_query + first_row + 16 * i + 8 * h + g;
        m[i][h] = -INFINITY;
        l[i][h] = 0.0F;
        visible[i][h] = query < problem.query_len ? problem.visible_keys(query) : 0;
      }
    }

    const auto fetch = [&](std::int64_t step) {
      if (step < steps) {
        load_swizzled_async<T, D>(x.k, step * Bc, Bc, columns, k_width, K(step));
        load_swizzled_async<T, D>(x.v, step * Bc, Bc, columns, v_width, V(step));
      }
      AsyncCopies::commit();  // empty past the end, so that waiting counts alike
    };
    load_swizzled_async<T, D>(x.q, first_query, Br, columns, q_width, Q);
    for (int step = 0; step < stages - 1; ++step) fetch(step);
    const float scale = problem.scale * 1.44269504088896340736F;  // log2(e)

    for (std::int64_t step = 0; step < steps; ++step) {
      AsyncCopies::wait<stages - 2>();
      __syncthreads();  // (1), and (2) for the tile of the step before
      fetch(step + stages - 1);

      float s[row_tiles][Bc / 8][4] = {};
      score(Q, K(step), first_row, lane, s);
      const std::int64_t first_key = step * Bc;
      const bool is_boundary = first_key + Bc > all_see;
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float largest = m[i][h];
#pragma unroll
          for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
              float& score_of = s[i][j][2 * h + c];
              score_of *= scale;
              if (is_boundary && first_key + 8 * j + 2 * t + c >= visible[i][h])
                score_of = -INFINITY;
              largest = fmaxf(largest, score_of);
            }
          }
          largest = over_row(largest, [](float p, float q) { return fmaxf(p, q); });
          const float keep = exp_below<HardwareExp2>(m[i][h], largest);
          m[i][h] = largest;
          float sum = 0.0F;
#pragma unroll
          for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
              float& weight = s[i][j][2 * h + c];
              weight = exp_below<HardwareExp2>(weight, largest);
              sum += weight;
            }
          }
          l[i][h] = l[i][h] * keep + sum;  // of this lane's keys; the row's at the end
#pragma unroll
          for (int n = 0; n < D / 8; ++n) {
            o[i][n][2 * h] *= keep;
            o[i][n][2 * h + 1] *= keep;
          }
        }
      }
      weigh(s, V(step), lane, o);
    }
    AsyncCopies::wait<0>();  // without keys Q may still be under way

#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float sum = over_row(l[i][h], [](float p, float q) { return p + q; });
        const std::int64_t query = first_query + first_row + 16 * i + 8 * h + g;
        if (query >= problem.query_len) continue;
        const float divisor = divisor_of(sum);
        T* const row = x.o.row(query);
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            const int column = 8 * n + 2 * t + c;
            if (column < columns) row[column] = T(o[i][n][2 * h + c] / divisor);
          }
        }
        if (t == 0) a.lse[at.head * problem.query_len + query] = log_sum_exp2(m[i][h], sum);
      }
    }
  }

  /// s += Q K^T for the rows of the warp.
  static __device__ void score(const Tile& Q, const Tile& K, int first_row, int lane,
                               float (&s)[row_tiles][Bc / 8][4]) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      unsigned q[row_tiles][4];
#pragma unroll
      for (int i = 0; i < row_tiles; ++i)
        load_matrices(q[i], Q.at(first_row + 16 * i + lane % 16, 2 * k + lane / 16));
#pragma unroll
      for (int j = 0; j < Bc / 16; ++j) {
        unsigned keys[4];  // of keys 16 j and 16 j + 8: both halves of the 16 columns
        load_matrices(keys, K.at(16 * j + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
        const unsigned first[2] = {keys[0], keys[1]}, second[2] = {keys[2], keys[3]};
#pragma unroll
        for (int i = 0; i < row_tiles; ++i) {
          mma_16x8x16<T>(s[i][2 * j], q[i], first);
          mma_16x8x16<T>(s[i][2 * j + 1], q[i], second);
        }
      }
    }
  }

  /// o += P V; P is rounded to T here.
  static __device__ void weigh(const float (&p)[row_tiles][Bc / 8][4], const Tile& V, int lane,
                               float (&o)[row_tiles][D / 8][4]) {
#pragma unroll
    for (int k = 0; k < Bc / 16; ++k) {
      unsigned weights[row_tiles][4];
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const float(&of)[4] = p[i][2 * k + r / 2];
          weights[i][r] = packed<T>(of[r % 2 * 2], of[r % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int n = 0; n < D / 16; ++n) {
        unsigned values[4];
        load_matrices_transposed(values, V.at(16 * k + lane % 16, 2 * n + lane / 16));
        const unsigned first[2] = {values[0], values[1]}, second[2] = {values[2], values[3]};
#pragma unroll
        for (int i = 0; i < row_tiles; ++i) {
          mma_16x8x16<T>(o[i][2 * n], weights[i], first);
          mma_16x8x16<T>(o[i][2 * n + 1], weights[i], second);
        }
      }
    }
  }
};

template <typename T, int D, int Br, int Bc, int warps, int stages, Scheduling::Value scheduling>
__global__ void __launch_bounds__(32 * warps) fa2_mma(Arguments a, TileLaunch launch) {
  for_each_tile<scheduling>(a, launch, [&](const TilePosition& at) {
    Fa2Tile<T, D, Br, Bc, warps, stages>::make(a, at);
  });
}

/// A kernel that is compiled, and the Plans and problems it is for.
struct Variant {
  ElementType type;
  std::int64_t dim, query_tile, key_tile, warps, stages;
  std::int64_t shared_bytes;
  TileKernels kernels;
};

template <typename T, int D, int Br, int Bc, int warps, int stages, bool can_persist = false>
constexpr Variant variant() {
  TileKernels kernels{.one_tile = fa2_mma<T, D, Br, Bc, warps, stages, Scheduling::one_tile>};
  if constexpr (can_persist) {
    kernels.persistent = fa2_mma<T, D, Br, Bc, warps, stages, Scheduling::persistent>;
  }
  return {std::is_same_v<T, __half> ? ElementType::fp16 : ElementType::bf16,
          D,
          Br,
          Bc,
          warps,
          stages,
          Fa2Tile<T, D, Br, Bc, warps, stages>::shared_bytes,
          kernels};
}

/// Each costs two seconds of nvcc: T2's tiles, rows twice as many with twice the warps (T1), and
/// with twice the rows a warp and three stages.
template <typename T, int D>
constexpr std::array<Variant, 3> variants_of_dim{variant<T, D, 64, 64, 4, 2, true>(),
                                                 variant<T, D, 128, 64, 8, 2>(),
                                                 variant<T, D, 128, 32, 4, 3>()};

std::span<const Variant> variants(const Problem& problem) {
  const bool is_half = problem.element_type == ElementType::fp16;
  const auto of = [&]<int D>(std::integral_constant<int, D>) {
    return std::span<const Variant>(is_half ? variants_of_dim<__half, D>
                                            : variants_of_dim<__nv_bfloat16, D>);
  };
  if (problem.head_dim <= 32) return of(std::integral_constant<int, 32>{});
  if (problem.head_dim <= 64) return of(std::integral_constant<int, 64>{});
  return of(std::integral_constant<int, 128>{});
}

const Variant* find_variant(const Problem& problem, const Plan& plan) {
  for (const Variant& v : variants(problem)) {
    if (v.query_tile == plan.query_tile && v.key_tile == plan.key_tile && v.warps == plan.warps &&
        v.stages == plan.stages) {
      return &v;
    }
  }
  return nullptr;
}

TileNeeds needs_of(const Problem& problem, const Plan& plan, const Variant& v) {
  const BlockGrid grid = block_grid(problem, plan);
  return {.threads = 32 * v.warps,
          .shared_floats = v.shared_bytes / 4,
          .grid_x = grid.x,
          .grid_y = grid.y};
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const Variant* const v = find_variant(problem, plan);
  if (v == nullptr) {
    std::string sizes;
    for (const Variant& other : variants(problem)) {
      const Plan offered{.query_tile = other.query_tile,
                         .key_tile = other.key_tile,
                         .warps = other.warps,
                         .stages = other.stages};
      sizes += (sizes.empty() ? "" : "; ") + to_string(offered);
    }
    return "the plan is " + to_string(plan) + "; compiled for this head_dim: " + sizes;
  }
  if (auto reason =
          why_tiles_do_not_fit(problem, plan, [&] { return needs_of(problem, plan, *v); })) {
    return reason;
  }
  if (plan.scheduling == Scheduling::persistent && v->kernels.persistent == nullptr) {
    return "scheduling is persistent; compiled with the first plan's tiles only";
  }
  return why_order_does_not_fit(plan);
}

std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> offered;
  for (const Variant& v : variants(problem)) {
    const Plan plan{
        .query_tile = v.query_tile, .key_tile = v.key_tile, .warps = v.warps, .stages = v.stages};
    if (!unsupported(problem, plan)) offered.push_back(plan);
  }
  return with_grid_orders(std::move(offered), problem, unsupported);
}

void run(const Arguments& a, Device& device) {
  const Variant& v = *find_variant(a.problem, a.plan);
  launch_output_tiles(v.kernels, needs_of(a.problem, a.plan, v), a, device);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  // A lane adds its two keys of every eight of a tile, then the tiles, and at the end four lanes
  // meet.
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile));
  return {.score = hopper(),
          .value = hopper(),
          .scale_after_dot = true,
          .exp = ex2_approx(),
          .weight_format = problem.element_type,
          .rescale = Rescale::deferred,
          .blocks = blocks,
          .normaliser_chain = plan.key_tile / 4 + blocks + 2,
          .division_error = 0x1p-24,  // one IEEE division
          .log_error = ln_error,
          .lse = LseForm::log2,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.name = "fa2_mma",
     .summary = "FA2 on tensor cores: mma.sync, asynchronous copies, P in registers",
     .source = "T1, T2, T3, D2, D3 [FA2 Alg. 1]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .ignores_hidden_nan = false,
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes = tile_counter_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
