// K10, wide tiles [ours; FA2 Alg. 1]: how far plain fp32 FMAs go.
//
// Idea
//   A thread makes 8 x 8 scores and 8 rows of O, and everything around its FMAs is made rare. Both
//   factors of both products lie in shared memory with the reduction index slowest: 16 numbers for
//   64 FMAs are four 128-bit loads, and those of the next step are under way while this one is
//   multiplied. cp.async fills the tiles, transposing Q and K, one slice ahead. Weights go from the
//   threads that made them to those that need them through shared memory, without a barrier of
//   their own.
// Resident
//   shared     Q^T [D, Br + 4] for the whole loop; P^T [Bc, 32] for each 32 rows; two slices in
//              turn, of K^T [k_dims, Bc + 4] or of V [v_keys, D]; how many keys each row sees
//   registers  S, then P [8, 8]; O [8, D / 8 / WK], not normalised; m and l of 8 rows; two steps'
//              worth of factors
//   global     nothing but the inputs and the one write of O and LSE
// Legend
//   Br, Bc query_tile, key_tile; D dim_tile, the head dim rounded up to what is compiled; WR x WK
//   warps of 32 x 64 scores each: past D = 96 the registers hold only part of a row of O, so WK
//   warps share 32 rows and each makes D / WK of their columns; s scores times log2(e), so that
//   2^s = exp(score); m running maximum of s; l a thread's part of the sum of P = 2^(s - m); seen:
//   keys of the tile that a row sees, always its first ones
// Masking
//   Only warps with a row that does not see the whole tile compare. There hidden scores become
//   -inf, and O takes a key's V only in rows that see it, by branch, since 0 * NaN is NaN. Past
//   the end of a tensor tiles hold zeros.
// Barriers
//   (1) a slice has arrived in all threads, and P and m are written; all have left the slice before
//       it, where the next one goes
//   (2) the maxima of the WK warps of a row are complete before they are compared
//   (3) so are their sums
// Limits
//   fp32; head_dim 1 to 256. Shared memory in KiB: 67 up to head_dim 32, 100 up to 64, 107 up to 96
//   (two blocks on a multiprocessor of sm_90), 198 up to 128 and 199 up to 256 (one block).
#include <algorithm>
#include <array>
#include <numbers>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/async_tile.cuh"
#include "gpu/primitives/grid_order.cuh"
#include "gpu/primitives/head_rows.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/wide_plan.cuh"
#include "gpu/primitives/wide_tile.cuh"

namespace attest {
namespace {

template <int D, int WR, int WK>
struct Tiles {
  static constexpr int Br = WR * warp_rows, Bc = WK * warp_columns, threads = 32 * WR * WK;
  static constexpr int columns = D / WK / 8;  ///< of O that a thread makes
  static constexpr int k_dims = D == 64 || D == 128 ? 64 : 32;
  static constexpr int v_keys = D == 96 || D == 256 ? 32 : 64, stages = 2;
  // 4 past a multiple of 32, as load_transposed_async() wants it.
  static constexpr int q_pitch = Br + 4, k_pitch = Bc + 4;
  using Slices = KeyValueSlices<Bc, D, k_dims, v_keys, k_pitch, threads, stages>;
  static constexpr int visible_floats = 2 * Br, exchange_floats = WK > 1 ? WK *Br : 0;
  static constexpr int shared_floats =
      visible_floats + D * q_pitch + Br * Bc + exchange_floats + stages * Slices::slice_floats;
};

template <int D, int WR, int WK>
__device__ __forceinline__ void make_tile(const ForwardArguments& a, const TilePosition& position) {
  using T = Tiles<D, WR, WK>;
  constexpr int Br = T::Br, Bc = T::Bc, threads = T::threads;
  const Problem& problem = a.problem;
  const int head_dim = static_cast<int>(problem.head_dim);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const WideLane lane;
  const int first_row = warp % WR * warp_rows;   // of the warp, in the query tile
  const int own_key = warp / WR * warp_columns;  // of the warp's scores, in the key tile
  const int own_column = warp / WR * (D / WK) + 4 * lane.tx;  // of the thread's part of O

  const std::int64_t first_query = position.tile * Br;
  const std::int64_t last_query = problem.query_len - 1;
  const std::int64_t batch = position.head / problem.query_heads;
  const HeadRows x = head_rows(a, batch, position.head % problem.query_heads);
  const auto keys_of = [&](std::int64_t row) {  // rows past the end see what the last one sees
    const std::int64_t query = first_query + row;
    return problem.visible_keys(query < last_query ? query : last_query);
  };
  const std::int64_t tile_visible = keys_of(Br - 1);  // later queries see more
  const bool has_rows = first_query + first_row <= last_query;
  const std::int64_t first_visible = has_rows ? keys_of(first_row) : 0;
  const std::int64_t last_visible = has_rows ? keys_of(first_row + warp_rows - 1) : 0;

  auto* const visible = dynamic_shared<std::int64_t>();
  float* const Q = dynamic_shared<float>() + T::visible_floats;
  float* const P = Q + D * T::q_pitch;
  float* const exchange = P + Br * Bc;
  const TurnedWeights weights(P + first_row * Bc, lane);

  for (int i = static_cast<int>(threadIdx.x); i < Br; i += threads) visible[i] = keys_of(i);
  load_transposed_async<Br, D, threads>(x.q, first_query, 0, head_dim, Q, T::q_pitch);
  const float c = problem.scale * std::numbers::log2e_v<float>;
  typename T::Slices slices(x.k, x.v, head_dim, tile_visible, exchange + T::exchange_floats);

  float o[lane_rows][T::columns] = {};
  float m[lane_rows], l[lane_rows];
#pragma unroll
  for (int i = 0; i < lane_rows; ++i) m[i] = -INFINITY, l[i] = 0.0F;

  for (std::int64_t first_key = 0; first_key < tile_visible; first_key += Bc) {
    const int some_see = keys_seen(last_visible, first_key, Bc);
    const int all_see = keys_seen(first_visible, first_key, Bc);
    const bool has_scores = some_see > own_key;

    float s[lane_rows][lane_columns] = {};
    for (int n = 0; n < slices.k_slices(); ++n) {
      const float* const K = slices.next() + own_key + 4 * lane.tx;  // (1)
      const float* const q = Q + n * T::k_dims * T::q_pitch + first_row + 4 * lane.ty;
      if (has_scores) {
        add_scores<T::q_pitch, T::k_pitch>(q, K, min(T::k_dims, head_dim - n * T::k_dims), s);
      }
    }

    float top[lane_rows];
    if (has_scores) {
#pragma unroll
      for (int i = 0; i < lane_rows; ++i) {
#pragma unroll
        for (int j = 0; j < lane_columns; ++j) s[i][j] *= c;
      }
      if (all_see < own_key + warp_columns) {
#pragma unroll
        for (int i = 0; i < lane_rows; ++i) {
          const int seen = keys_seen(visible[first_row + lane.row(i)], first_key, Bc);
#pragma unroll
          for (int j = 0; j < lane_columns; ++j) {
            if (own_key + lane.column(j) >= seen) s[i][j] = -INFINITY;
          }
        }
      }
#pragma unroll
      for (int i = 0; i < lane_rows; ++i) {
        top[i] = s[i][0];
#pragma unroll
        for (int j = 1; j < lane_columns; ++j) top[i] = fmaxf(top[i], s[i][j]);
        top[i] = over_wide_row(top[i], [](float u, float v) { return fmaxf(u, v); });
      }
    }
    if constexpr (WK > 1) {
      float* const rows = exchange + first_row;
      if (lane.tx == 0) {
#pragma unroll
        for (int i = 0; i < lane_rows; ++i)
          rows[warp / WR * Br + lane.row(i)] = has_scores ? top[i] : -INFINITY;
      }
      __syncthreads();  // (2)
#pragma unroll
      for (int i = 0; i < lane_rows; ++i) {
        top[i] = rows[lane.row(i)];
        for (int w = 1; w < WK; ++w) top[i] = fmaxf(top[i], rows[w * Br + lane.row(i)]);
      }
    }
    if (some_see > 0) {
#pragma unroll
      for (int i = 0; i < lane_rows; ++i) {
        const float m_new = fmaxf(m[i], top[i]);
        const float shift = m_new == -INFINITY ? 0.0F : m_new;  // as exp_below()
        const float rescale = HardwareExp2::of(m[i] - shift);
        m[i] = m_new;
        float sum = 0.0F;
#pragma unroll
        for (int j = 0; j < lane_columns; ++j) {
          s[i][j] = HardwareExp2::of(s[i][j] - shift);
          sum += s[i][j];
        }
        l[i] = fmaf(rescale, l[i], has_scores ? sum : 0.0F);
#pragma unroll
        for (int e = 0; e < T::columns; ++e) o[i][e] *= rescale;
      }
      if (has_scores) weights.store(s, own_key);
    }

    for (int n = 0; n < T::Slices::v_slices; ++n) {
      const float* const V = slices.next() + own_column;  // (1)
      const int begin = n * T::v_keys, end = min(some_see - begin, T::v_keys);
      // Keys of the slice, in sixteens, that all rows of the warp see.
      const int whole = max(0, min(all_see - begin, T::v_keys)) & ~15;
      if (whole > 0) add_values<D>(weights.sixteen(begin), V, whole, o);
#pragma unroll 1
      for (int k = whole; k < end; ++k) {
        float p[lane_rows], v[T::columns];
        weights.load(begin + k, p);
        load_groups(V + k * D, 32, v);
#pragma unroll
        for (int i = 0; i < lane_rows; ++i) {
          if (first_key + begin + k < visible[first_row + lane.row(i)]) {
#pragma unroll
            for (int e = 0; e < T::columns; ++e) o[i][e] = fmaf(p[i], v[e], o[i][e]);
          }
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < lane_rows; ++i) {
    l[i] = over_wide_row(l[i], [](float u, float v) { return u + v; });
  }
  if constexpr (WK > 1) {
    float* const rows = exchange + first_row;
    if (lane.tx == 0) {
#pragma unroll
      for (int i = 0; i < lane_rows; ++i) rows[warp / WR * Br + lane.row(i)] = l[i];
    }
    __syncthreads();  // (3)
#pragma unroll
    for (int i = 0; i < lane_rows; ++i) {
      l[i] = rows[lane.row(i)];
      for (int w = 1; w < WK; ++w) l[i] += rows[w * Br + lane.row(i)];
    }
  }
  const bool wide_o = widest_copy(x.o.first, 4 * x.o.stride, 4 * head_dim) == 16;
#pragma unroll
  for (int i = 0; i < lane_rows; ++i) {
    const std::int64_t query = first_query + first_row + lane.row(i);
    if (query > last_query) continue;
    store_groups(o[i], divisor_of(l[i]), x.o.row(query), own_column, head_dim, wide_o);
    if (own_column == 0)
      a.lse[position.head * problem.query_len + query] = log_sum_exp2(m[i], l[i]);
  }
}

template <int D, int WR, int WK>
__global__ void __launch_bounds__(32 * WR * WK, WR* WK > 4 ? 1 : 2)
    k10_wide_tiles(ForwardArguments a, TileLaunch launch) {
  for_each_tile<Scheduling::one_tile>(a, launch,
                                      [&](const TilePosition& at) { make_tile<D, WR, WK>(a, at); });
}

template <int D, int WR, int WK>
constexpr WideForm form() {
  using T = Tiles<D, WR, WK>;
  return {{.query_tile = T::Br,
           .key_tile = T::Bc,
           .dim_tile = D,
           .thread_rows = lane_rows,
           .thread_keys = lane_columns,
           .warps = WR * WK,
           .stages = T::stages},
          T::shared_floats,
          {k10_wide_tiles<D, WR, WK>}};
}
constexpr std::array forms{form<32, 4, 1>(), form<64, 4, 1>(), form<96, 4, 1>(), form<128, 4, 2>(),
                           form<256, 2, 4>()};

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  return why_no_wide_form(forms, problem, plan);
}

void run(const ForwardArguments& a, Device& device) {
  launch_wide_form(forms, a, device);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile));
  return {.scale_after_dot = true,
          .exp = ex2_approx(),
          .rescale = Rescale::deferred,
          .blocks = tiles,
          // A thread adds the 8 weights of a tile, then the tiles; 8 lanes and WK warps meet.
          .normaliser_chain = lane_columns + tiles + 3 + plan.key_tile / warp_columns,
          .division_error = 0x1p-24,  // one IEEE division
          .log_error = ln_error,
          .lse = LseForm::log2,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.name = "k10_wide_tiles",
     .summary = "8x8 register tiles fed by 128-bit loads from transposed tiles that cp.async fills",
     .source = "ours; FA2 Alg. 1",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .compute_capabilities = {.least = 80},
     .precision = precision,
     .plans = [](const Problem& problem) { return wide_plans(forms, problem); },
     .unsupported = unsupported,
     .launch = run}};

}  // namespace
}  // namespace attest
