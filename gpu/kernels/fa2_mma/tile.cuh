#pragma once

// FA2 on tensor cores [FA2 Alg. 1; T1 to T3]: 16-bit inputs, mma.sync of sm_80 and up, everything
// between the two products in registers.
//
// Idea
//   A block of `warps` warps makes a tile of O; each warp has Br / warps rows of it, 16 or 32, for
//   itself, so warps never exchange anything. K and V arrive by asynchronous copies, `stages` tiles
//   in flight or in use. Scores S = Q K^T leave the tensor cores in fp32; P = exp2(c S - r),
//   rounded to 16 bits, is already where the next product wants its left operand: P never touches
//   shared memory. r is raised, and O rescaled, only where scores ask for it (softmax.cuh).
// Resident
//   shared     Q [Br, D], later the block's O; K, V [stages, Bc, D]; swizzled (swizzled_tile.cuh).
//              D is head_dim rounded up to a size that is compiled; the columns between are zeros.
//   registers  S and O, fragments of the tensor cores; Q too where it fits; r, l of the rows
//   global     nothing but the inputs and the one write of O and LSE
// Legend
//   Br, Bc query_tile, key_tile; S scores before the scale; c scale times log2(e); P weights
//   exp2(c S - r); r a row's reference; l sum of P before it is rounded; g, t: lane = 4 g + t.
// Masking
//   Tiles that no row of the block sees are not read. Only tiles that hold a key some row does not
//   see compare keys with rows; there S becomes -inf. A warp leaves out tiles that none of its rows
//   sees. Rows and keys past the end are zeros.
//   P of a hidden key is 0 and multiplies V: a hidden NaN in a tile that another row of the warp
//   sees does reach the row (ignores_hidden_nan is false).
// Barriers, besides those between the tiles of a persistent block (for_each_tile)
//   (1) K of this step has arrived, for all threads, and V with it where there are stages for it
//   (2) all have read a tile before the copies of a later step overwrite it: the same barrier
//   (3) one stage only: V has arrived, and all have read K
//   (4) without a single step: Q has arrived before O takes its place
// Three works (head_work.cuh, modified_work.cuh)
//   dense    full lengths, no window or a causal one, a positive scale: what must be fast
//   general  windows, softcap, hidden keys, lengths, any scale, packed rows, splits of the keys
//   modified all that, and sinks, ALiBi, a bias, prefixes, documents and dropout
// Modifications (modifications.cuh), in the order in which a tile meets them
//   prefix     raises the end of what a row sees
//   documents  narrow the tiles that are read, as a mask does, and hide keys at their edges
//   sink       r and l of a row begin with it, in the first split alone
//   ALiBi,     are added to S, over the scale: the exponent's product then forms scores as without
//     bias     them. S that is formed before, of a softcap, say, takes them in units of log2
//   dropout    clears weights in P, which l has added; O is multiplied by 1 / (1 - p) at the end
// Division
//   once, when all keys are in O; or, in a shape that divides at every step, after each key tile,
//   as FA1 does [FA1, arXiv 2205.14135, Algorithm 1, line 12]:
//     O <- (2^(r_old - r) l_old O + P V) / l,  l <- 2^(r_old - r) l_old + sum of P
//   with O and l_old as the key tile before left them. l_old O, which does not hang on the scores,
//   is formed before Q K^T: tensor cores can work meanwhile, and nothing spills at D 128.
// Limits
//   fp16, bf16; head_dim and value_dim up to 256. Arithmetic: hopper().

#include <cstdint>
#include <numbers>
#include <type_traits>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "gpu/kernels/fa2_mma/modifications.cuh"
#include "gpu/kernels/fa2_mma/modified_work.cuh"
#include "gpu/kernels/fa2_mma/output.cuh"
#include "gpu/kernels/fa2_mma/products.cuh"
#include "gpu/kernels/fa2_mma/scoring.cuh"
#include "gpu/kernels/fa2_mma/shape.cuh"
#include "gpu/kernels/fa2_mma/softmax.cuh"
#include "gpu/kernels/head_work.cuh"
#include "gpu/kernels/key_splits.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

template <typename Shape, template <typename> typename WorkOf>
struct Fa2Tile {
  using T = typename Shape::T;
  using Work = WorkOf<T>;
  using Tile = SwizzledTile<T, Shape::D>;
  using Products = typename Shape::template ProductsOf<Shape>;
  using Softmax = Fa2Softmax<Shape>;
  using Scoring = Fa2Scoring<Shape, Work>;
  using Modifications = Fa2Modifications<Shape, Work>;
  static constexpr int Br = Shape::Br, Bc = Shape::Bc, D = Shape::D, stages = Shape::stages;
  static constexpr int row_tiles = Shape::row_tiles,
                       tile_bytes = Shape::tile_elements * static_cast<int>(sizeof(T));
  static constexpr bool is_modified = std::is_same_v<Work, ModifiedWork<T>>;
  static constexpr bool forms_scores = WorkOf<T>::is_general || Shape::takes_any_scale;

  /// Makes tile `tile` of head `head`, of the keys the part `split`.
  static __device__ __forceinline__ void make(const ForwardArguments& a, int head, int tile,
                                              int split) {
    const Problem& problem = a.problem;
    const Work work(a, head);
    const int first_row = tile * Br;
    if (Work::is_general && first_row >= work.rows) return;
    const int columns = static_cast<int>(problem.head_dim);
    const int v_columns = static_cast<int>(problem.output_dim());
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * Shape::warp_rows;
    const int warp_first = first_row + warp_row;
    const int k_width = widest_row_copy(work.k, columns);
    const int v_width = widest_row_copy(work.v, v_columns);

    T* const shared = dynamic_shared<T>();
    const Tile Q{shared};
    const auto K = [&](int stage) { return Tile{shared + Br * D + stage * Shape::tile_elements}; };
    const auto V = [&](int stage) { return K(stages + stage); };

    // Neither end of a range falls from row to row: first and last row say what holds for all.
    const int last_row = first_row + Br - 1;
    int begin = work.first_key(first_row), end = work.past_key(last_row);
    int all_from = work.first_key(last_row), all_to = work.past_key(first_row);
    if constexpr (is_modified) {
      if (work.has_documents()) {
        const int first = work.document_of(first_row), last = work.document_of(last_row);
        begin = max(begin, work.first_key_of(first));
        end = min(end, work.first_key_of(last + 1));
        all_from = max(all_from, work.first_key_of(last));
        all_to = min(all_to, work.first_key_of(first + 1));
      }
    }
    int step = begin / Bc;
    int steps = begin < end ? (end + Bc - 1) / Bc : step;  // one past the last
    if constexpr (Work::is_general) {
      if (a.plan.key_splits > 1) {
        const auto splits = static_cast<int>(a.plan.key_splits);
        const int share = (steps - step + splits - 1) / splits;
        step = min(step + split * share, steps);
        steps = min(step + share, steps);
      }
    }
    const int first_step = step;
    // Tiles that are copied as streams: whole ones of rows that 16 bytes divide.
    const int whole_steps =
        k_width == 16 && v_width == 16 ? static_cast<int>(work.k.count / Bc) : 0;
    // One past the last step that is open: see make_step. A tile with rows that do not exist has
    // none, so that its warps without rows need not work.
    const int open_steps = first_row + Br > work.rows ? 0
                           : whole_steps >= steps
                               ? all_to / Bc
                               : min(all_to / Bc, whole_steps - max(1, stages - 1));

    TileStream<Bc, Shape::threads, T, D> k_stream(work.k, std::int64_t{step} * Bc);
    TileStream<Bc, Shape::threads, T, D> v_stream(work.v, std::int64_t{step} * Bc);
    // Keys and values are fetched in the order of their steps.
    const auto fetch_keys = [&](auto is_whole, int at, int stage) {
      if (decltype(is_whole)::value || at < whole_steps)
        k_stream.copy(SharedAddress(K(stage).first), columns);
      else
        load_swizzled_async(work.k, std::int64_t{at} * Bc, Bc, columns, k_width, K(stage));
      k_stream.advance();
    };
    const auto fetch_values = [&](auto is_whole, int at, int stage) {
      if (decltype(is_whole)::value || at < whole_steps)
        v_stream.copy(SharedAddress(V(stage).first), v_columns);
      else
        load_swizzled_async(work.v, std::int64_t{at} * Bc, Bc, v_columns, v_width, V(stage));
      v_stream.advance();
    };
    const auto fetch = [&](auto is_whole, int at, int stage) {
      if (at < steps) {
        fetch_keys(is_whole, at, stage);
        if constexpr (stages > 1) fetch_values(is_whole, at, stage);
      }
      AsyncCopies::commit();  // empty past the end, so that waiting counts alike
    };
    load_queries(work, first_row, columns, Q);
    if (columns < D) clear_columns(K(0), stages * Bc, columns);
    if (v_columns < D) clear_columns(V(0), stages * Bc, v_columns);
#pragma unroll 1
    for (int i = 0; i < max(1, stages - 1); ++i) fetch(std::false_type{}, step + i, i);

    typename Shape::Outputs o = {};
    Softmax softmax;
    typename Products::Queries q;
    // With a positive scale, and no softcap, the exponent's product forms the scores.
    const float scale = problem.scale * std::numbers::log2e_v<float>;
    const bool is_plain = !forms_scores || (scale > 0.0F && problem.softcap == 0.0F);
    const float c = is_plain ? scale : 1.0F;
    const int offset = SwizzledLane<T, D>::offset(lane);
    const int key_offset = SwizzledLane<T, D>::offset_by_rows(lane);
    const SharedAddress warp_queries(Q.first + warp_row * D);
    if constexpr (is_modified) {
      if (split == 0) Modifications::see_sinks(softmax, work, warp_first + g, t == 0);
    }
    int stage = 0;

    // An open step's tile is seen whole by every row, and what it fetches is a whole tile, too.
    const auto make_step = [&](auto open) {
      constexpr bool is_open = decltype(open)::value;
      AsyncCopies::wait<(stages > 1 ? stages - 2 : 0)>();
      __syncthreads();  // (1), and (2) for the tiles of the step before
      if constexpr (stages > 1) {
        fetch(open, step + stages - 1, stage == 0 ? stages - 1 : stage - 1);
      } else {
        fetch_values(open, step, 0);
        AsyncCopies::commit();
      }
      if constexpr (Shape::keeps_queries) {
        if (step == first_step) Products::load_kept(q, warp_queries, offset);
      }
      const SharedAddress keys = SharedAddress(K(0).first) + stage * tile_bytes;
      const SharedAddress values = keys + stages * tile_bytes;
      const int first_key = step * Bc;
      const bool is_seen = is_open || is_seen_by_warp(work, warp_first, first_key);
      typename Shape::Scores s = {};
      if (is_seen) {
        if constexpr (Shape::divides_every_step) softmax.multiply_back(o);
        Products::form_scores(q, warp_queries, offset, keys, key_offset, s);
      }
      if constexpr (stages == 1) {
        AsyncCopies::wait<0>();
        __syncthreads();  // (3)
        fetch(open, step + 1, 0);
      }
      if (is_seen) {
        if constexpr (forms_scores) {
          if (!is_plain) Scoring::form(s, problem);
        }
        if constexpr (is_modified) {
          const float unit = is_plain ? 1.0F / problem.scale : std::numbers::log2e_v<float>;
          Modifications::add_terms(s, work, first_key + 2 * t, warp_first + g, unit);
        }
        if constexpr (Work::is_general) {
          if (work.has_padding() || first_key < all_from || first_key + Bc > all_to) {
            Scoring::hide(s, work, first_key + 2 * t, warp_first + g);
            if constexpr (is_modified)
              Modifications::hide_documents(s, work, first_key + 2 * t, warp_first + g);
          }
        } else if (!is_open) {
          Scoring::hide(s, work, first_key + 2 * t, warp_first + g);
        }
        softmax.see(s, c, o);
        if constexpr (is_modified) {
          Fa2Kept<Shape> kept;
          Modifications::draw(kept, work, problem, first_key + 2 * t, warp_first + g);
          Fa2DroppedWeights<Shape> weights{softmax, kept};
          Products::add_values(weights, s, c, values, offset, o);
        } else {
          Products::add_values(softmax, s, c, values, offset, o);
        }
        if constexpr (Shape::divides_every_step) softmax.divide(o);
      }
      if constexpr (stages > 1) stage = stage == stages - 1 ? 0 : stage + 1;
    };
    if constexpr (!Work::is_general) {
#pragma unroll 1
      for (; step < open_steps; ++step) make_step(std::true_type{});
    }
#pragma unroll 1
    for (; step < steps; ++step) make_step(std::false_type{});
    if (steps == first_step) {
      AsyncCopies::wait<0>();
      __syncthreads();  // (4)
    }

    if constexpr (is_modified) Modifications::scale_kept(o, work, problem);
    typename Shape::Rows factor;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float sum = softmax.l[i][h] = row_sum(softmax.l[i][h]);
        factor[i][h] = Shape::divides_every_step ? 1.0F : 1.0F / divisor_of(sum);
      }
    }
    if constexpr (Work::is_general) {
      if (a.plan.key_splits > 1) {
        const auto partials = PartialResults<>::of(a);
#pragma unroll
        for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int row = warp_first + 16 * i + 8 * h + g;
            if (row >= work.rows) continue;
            partials.store(partials.row(split, work.dense_row_of(row)), t, o[i], h, softmax.r[i][h],
                           softmax.l[i][h]);
          }
        }
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = warp_first + 16 * i + 8 * h + g;
        if (t == 0 && row < work.rows)
          work.lse_of(row) = log_sum_exp2(softmax.r[i][h], softmax.l[i][h]);
        if constexpr (is_modified) {
          if (t == 0 && row < work.rows &&
              work.is_sink_alone(row, softmax.r[i][h], softmax.l[i][h]))
            work.lse_of(row) = work.sink_of(row);
        }
      }
    }
    store_output<Shape>(o, factor, work.o, warp_first, v_columns, Q.first + warp_row * D);
  }

  static __device__ __forceinline__ void load_queries(const Work& work, int first_row, int columns,
                                                      const Tile& Q) {
    const int width = widest_row_copy(work.q, columns);
    if (columns < D) clear_columns(Q, Br, columns);
    if constexpr (!Work::is_general) {
      if (width == 16 && first_row + Br <= work.rows) {
        TileStream<Br, Shape::threads, T, D>(work.q, first_row)
            .copy(SharedAddress(Q.first), columns);
        return;
      }
    }
    load_swizzled_async(work.q, first_row, Br, columns, width, Q);
  }

  static __device__ bool is_seen_by_warp(const Work& work, int warp_first, int first_key) {
    return warp_first < work.rows && first_key < work.past_key(warp_first + Shape::warp_rows - 1) &&
           first_key + Bc > work.first_key(warp_first);
  }
};

}  // namespace attest
