#pragma once

// What the controlled pairs (f_controlled_pairs.cu) do with a key tile that is in shared memory, in
// every form that a Plan can choose.

#include <cstdint>
#include <numbers>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/register_rows.cuh"
#include "gpu/primitives/register_tile.cuh"
#include "gpu/primitives/row_shuffle.cuh"

namespace attest {

/// Scores of a thread of the controlled pairs.
inline constexpr int form_rows = 4, form_keys = 4;

/// The choices, and those of the base.
struct Form {
  Normalise::Value normalise = Normalise::at_the_end;
  MaskedTiles::Value masked_tiles = MaskedTiles::boundary;
  ExpChoice::Value exp = ExpChoice::fast;
  Passes::Value passes = Passes::one;
  LoopOrder::Value loop_order = LoopOrder::queries_outside;
  bool reads_queries_again = false;  ///< QueryReads::every_tile
};

template <ExpChoice::Value choice>
struct ExpOf : FastExp {};
template <>
struct ExpOf<ExpChoice::library> : LibraryExp {};
template <>
struct ExpOf<ExpChoice::exp2> : FoldedExp2 {};

/// Results that a visit of a key tile makes.
enum class FormStep { all, statistics, values };

/// The block's tiles in shared memory.
template <int columns>
struct FormTiles {
  SharedTile Q, K, V, P;

  __device__ FormTiles(int Br, int Bc, int D)
      : Q{dynamic_shared<float>(), D},
        K{Q.row(Br), D + 1},
        V{K.row(Bc), (D + columns - 1) / columns * columns},
        P{V.row(Bc), Bc + 1} {}
};

/// Moves l, and with it O, to the maxima m_new. O that is kept normalised is multiplied by the sum
/// that it was divided by, and so holds weighted sums until the tile is added.
template <Form form, int columns>
__device__ void rescale(const float (&m_new)[form_rows], RegisterRows<form_rows, columns>& rows) {
  using Exp = ExpOf<form.exp>;
  if constexpr (form.normalise == Normalise::at_the_end && form.passes == Passes::one) {
    rows.template rescale<Exp>(m_new);
  } else {
#pragma unroll
    for (int i = 0; i < form_rows; ++i) {
      rows.l[i] = exp_below<Exp>(rows.m[i], m_new[i]) * rows.l[i];
      rows.m[i] = m_new[i];
      if constexpr (form.passes == Passes::one) {
#pragma unroll
        for (int c = 0; c < columns; ++c) rows.o[i][c] = rows.l[i] * rows.o[i][c];
      }
    }
  }
}

/// Normalises O.
template <int columns>
__device__ void divide(RegisterRows<form_rows, columns>& rows) {
#pragma unroll
  for (int i = 0; i < form_rows; ++i) {
    const float divisor = divisor_of(rows.l[i]);
#pragma unroll
    for (int c = 0; c < columns; ++c) rows.o[i][c] = rows.o[i][c] / divisor;
  }
}

/// Adds a key tile that is in shared memory to the thread's rows. Not `masked`: all is seen.
template <Form form, FormStep step, bool masked, int columns>
__device__ void add_tile(const FormTiles<columns>& tiles,
                         const RegisterTile<form_rows, form_keys, columns>& at,
                         const int (&seen)[form_rows], float scale, int D,
                         RegisterRows<form_rows, columns>& rows) {
  using Exp = ExpOf<form.exp>;
  float s[form_rows][form_keys] = {};
  add_outer_products(tiles.Q.from(at.row), tiles.K.from(at.key), D, s);
  scale_scores(s, scale);
  if constexpr (step != FormStep::values) {
    float m_new[form_rows];
    row_maxima_over_lanes<masked>(s, at.key, seen, at.row_threads, rows.m, m_new);
    rescale<form>(m_new, rows);
  }
  weigh_in_registers<Exp, masked>(s, at.key, seen, rows.m);
  if constexpr (step != FormStep::values) add_sums_over_lanes(s, at.row_threads, rows.l);
  if constexpr (step == FormStep::statistics) return;
  store_tile_part(s, tiles.P.from(at.row, at.key));
  __syncthreads();  // (3)
  if (at.column < D) {
    add_weighted_values<columns>(tiles.P.from(at.row), tiles.V.from(0, at.column), seen, rows.o);
  }
  if constexpr (form.normalise == Normalise::every_step) divide(rows);
}

/// Visits a key tile, masked where the Form says so.
template <Form form, FormStep step, int columns>
__device__ void visit_tile(const ForwardArguments& a, const FormTiles<columns>& tiles,
                           const RegisterTile<form_rows, form_keys, columns>& at,
                           std::int64_t first_query, std::int64_t first_key,
                           RegisterRows<form_rows, columns>& rows) {
  const Problem& problem = a.problem;
  const int Bc = static_cast<int>(a.plan.key_tile);
  const int D = static_cast<int>(problem.head_dim);
  const float scale =
      form.exp == ExpChoice::exp2 ? problem.scale * std::numbers::log2e_v<float> : problem.scale;
  int seen[form_rows];
  keys_seen_by_rows(problem, first_query + at.row, first_key, Bc, seen);
  const bool all_see = problem.visible_keys(first_query) >= first_key + Bc;  // the first sees least
  if (form.masked_tiles == MaskedTiles::all || !all_see) {
    add_tile<form, step, true>(tiles, at, seen, scale, D, rows);
  } else {
    add_tile<form, step, false>(tiles, at, seen, scale, D, rows);
  }
}

/// LSE in nats. Scores for exp2 hold log2(e), so m does.
template <Form form>
__device__ float lse_of(float m, float l) {
  constexpr float ln_2 = 0.693147181F;
  return log_sum_exp(form.exp == ExpChoice::exp2 ? m * ln_2 : m, l);
}

}  // namespace attest
