// F, controlled pairs [claims F1, F2, O4, O5, O7, O8, D6, M3, P8]: one register-tile kernel in
// which a Plan changes one choice of the algorithm and nothing else, so that a study of two Plans
// with the same tiles measures that choice.
//
// Idea
//   The base is K7 without slices: FA2's order, statistics by shuffles, one division at the end,
//   comparisons with the mask only in tiles that some row does not see whole, the hardware's exp.
//     normalise every_step      O is divided by l after every key tile [O4 against O5]
//     masked_tiles all          each score of each tile is compared with the mask [M3]
//     exp library, exp2         expf; exp2f of scores that hold log2(e) by their scale [D6, O8]
//     passes two                Q K^T for m and l, then again for the weights: no rescale [O7]
//     query_reads every_tile    Q is read again before every key tile [P8]
//     loop_order keys_outside   FA1: one block a head, O, m and l travel through device memory at
//                               every key tile; as it is, and with every_step as FA1 has it [F1]
// Resident
//   shared     Q [Br, D]; K [Bc, D] in rows of D + 1 and V [Bc, D]; P [Br, Bc] in rows of Bc + 1
//   registers  S, then P; O, m and l of the thread's rows, m and l the same in all threads of a row
//   global     keys_outside: O, not normalised before its last visit, or normalised after each; m
//              and l of all rows in the workspace. All are initialised here.
// Legend
//   Br, Bc query_tile, key_tile; D head_dim; TM, TN scores of a thread: 4 x 4; S scores; m running
//   maximum; P weights exp(S - m); l their sum; seen: keys of the tile that each row sees
// Masking
//   as K4. P V visits only keys that a row sees, whatever masked_tiles says: 0 times NaN is not 0.
// Barriers
//   (1) all have read K, V, P (and for a new query tile Q) before they are overwritten; m and l in
//       global memory are written before other threads read them
//   (2) Q, K and V are complete before they are read
//   (3) P is complete before other threads read it
//   keys_outside needs none for O: a thread loads what it stored itself.
// Limits
//   fp32; head_dim to 128; one choice beside the base; exp2 only where scale log2(e) is 0 or
//   normal; what why_register_tiles_do_not_fit() says.
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/primitives/controlled_form.cuh"
#include "gpu/primitives/register_plan.cuh"

namespace attest {
namespace {

constexpr int TM = form_rows, TN = form_keys;

/// The base, and each other choice alone. Kernels take an index, because nvcc's stubs cannot name a
/// structure of a namespace.
constexpr Form forms[] = {
    Form{},
    Form{.normalise = Normalise::every_step},
    Form{.masked_tiles = MaskedTiles::all},
    Form{.exp = ExpChoice::library},
    Form{.exp = ExpChoice::exp2},
    Form{.passes = Passes::two},
    Form{.reads_queries_again = true},
    Form{.loop_order = LoopOrder::keys_outside},
    Form{.normalise = Normalise::every_step, .loop_order = LoopOrder::keys_outside}};

/// FA2's loop over the keys of a query tile.
template <Form form, FormStep step, int columns>
__device__ void visit_keys(const ForwardArguments& a, const HeadRows& x,
                           const FormTiles<columns>& tiles, const RegisterTile<TM, TN, columns>& at,
                           std::int64_t first_query, RegisterRows<TM, columns>& rows) {
  const int Br = static_cast<int>(a.plan.query_tile), Bc = static_cast<int>(a.plan.key_tile);
  const int D = static_cast<int>(a.problem.head_dim);
  const std::int64_t last_query = first_query + x.q.existing(first_query, Br) - 1;
  const std::int64_t tile_visible = a.problem.visible_keys(last_query);  // later queries see more
  for (std::int64_t first_key = 0; first_key < tile_visible; first_key += Bc) {
    __syncthreads();  // (1)
    if (form.reads_queries_again) load_widest(x.q, first_query, Br, D, D, tiles.Q);
    load_widest(x.k, first_key, Bc, D, D, tiles.K);
    if (step != FormStep::statistics) load_widest(x.v, first_key, Bc, D, tiles.V.stride, tiles.V);
    __syncthreads();  // (2)
    visit_tile<form, step>(a, tiles, at, first_query, first_key, rows);
  }
}

/// FA2's block: one output tile.
template <Form form, int columns>
__device__ void make_tile(const ForwardArguments& a, const TilePosition& tile) {
  const Problem& problem = a.problem;
  const int Br = static_cast<int>(a.plan.query_tile), Bc = static_cast<int>(a.plan.key_tile);
  const int D = static_cast<int>(problem.head_dim);
  const RegisterTile<TM, TN, columns> at(Bc);
  const std::int64_t head = tile.head;  // of all batch * query_heads
  const std::int64_t first_query = tile.tile * Br;
  const HeadRows x = head_rows(a, head / problem.query_heads, head % problem.query_heads);
  const FormTiles<columns> tiles(Br, Bc, D);
  RegisterRows<TM, columns> rows;

  if (!form.reads_queries_again) load_widest(x.q, first_query, Br, D, D, tiles.Q);
  if constexpr (form.passes == Passes::two) {
    visit_keys<form, FormStep::statistics>(a, x, tiles, at, first_query, rows);
    visit_keys<form, FormStep::values>(a, x, tiles, at, first_query, rows);
  } else {
    visit_keys<form, FormStep::all>(a, x, tiles, at, first_query, rows);
  }
  if constexpr (form.normalise == Normalise::at_the_end) divide(rows);
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const std::int64_t query = first_query + at.row + i;
    if (query >= problem.query_len) continue;
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      if (at.column + c < D) x.o.row(query)[at.column + c] = rows.o[i][c];
    }
    if (at.key == 0) {
      a.lse[head * problem.query_len + query] = lse_of<form>(rows.m[i], rows.l[i]);
    }
  }
}

template <int index, int columns>
__global__ void __launch_bounds__(max_register_threads)
    f_queries_outside(ForwardArguments a, TileLaunch launch) {
  for_each_tile<Scheduling::one_tile>(
      a, launch, [&](const TilePosition& tile) { make_tile<forms[index], columns>(a, tile); });
}

/// FA1's block: one head.
template <int index, int columns>
__global__ void __launch_bounds__(max_register_threads)
    f_keys_outside(ForwardArguments a, TileLaunch) {
  constexpr Form form = forms[index];
  const Problem& problem = a.problem;
  const int Br = static_cast<int>(a.plan.query_tile), Bc = static_cast<int>(a.plan.key_tile);
  const int D = static_cast<int>(problem.head_dim);
  const RegisterTile<TM, TN, columns> at(Bc);
  const std::int64_t head = blockIdx.x;
  const HeadRows x = head_rows(a, head / problem.query_heads, head % problem.query_heads);
  float* const m_rows = static_cast<float*>(a.workspace) + head * problem.query_len;
  float* const l_rows = m_rows + problem.rows();
  const FormTiles<columns> tiles(Br, Bc, D);

  /// Calls what(query, i) for the thread's rows that exist.
  const auto for_rows = [&](std::int64_t first_query, const auto& what) {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      if (first_query + at.row + i < problem.query_len) what(first_query + at.row + i, i);
    }
  };
  const auto for_columns = [&](const auto& what) {
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      if (at.column + c < D) what(c);
    }
  };
  for (std::int64_t first_query = 0; first_query < problem.query_len; first_query += Br) {
    for_rows(first_query, [&](std::int64_t query, int) {
      for_columns([&](int c) { x.o.row(query)[at.column + c] = 0.0F; });
      if (at.key == 0) m_rows[query] = -INFINITY, l_rows[query] = 0.0F;
    });
  }
  const std::int64_t head_visible = problem.visible_keys(problem.query_len - 1);
  for (std::int64_t first_key = 0; first_key < head_visible; first_key += Bc) {
    __syncthreads();  // (1)
    load_widest(x.k, first_key, Bc, D, D, tiles.K);
    load_widest(x.v, first_key, Bc, D, tiles.V.stride, tiles.V);
    for (std::int64_t first_query = 0; first_query < problem.query_len; first_query += Br) {
      const std::int64_t last_query = first_query + x.q.existing(first_query, Br) - 1;
      const std::int64_t tile_visible = problem.visible_keys(last_query);
      if (tile_visible <= first_key) continue;  // for all threads
      __syncthreads();                          // (1)
      load_widest(x.q, first_query, Br, D, D, tiles.Q);
      RegisterRows<TM, columns> rows;
      for_rows(first_query, [&](std::int64_t query, int i) {
        rows.m[i] = m_rows[query], rows.l[i] = l_rows[query];
        for_columns([&](int c) { rows.o[i][c] = x.o.row(query)[at.column + c]; });
      });
      __syncthreads();  // (2)
      visit_tile<form, FormStep::all>(a, tiles, at, first_query, first_key, rows);
      const bool is_last = tile_visible <= first_key + Bc;
      if (form.normalise == Normalise::at_the_end && is_last) divide(rows);
      for_rows(first_query, [&](std::int64_t query, int i) {
        for_columns([&](int c) { x.o.row(query)[at.column + c] = rows.o[i][c]; });
        if (at.key == 0) m_rows[query] = rows.m[i], l_rows[query] = rows.l[i];
      });
    }
  }
  for (std::int64_t first_query = 0; first_query < problem.query_len; first_query += Br) {
    for_rows(first_query, [&](std::int64_t query, int) {
      if (at.key != 0) return;  // who wrote them
      a.lse[head * problem.query_len + query] = lse_of<form>(m_rows[query], l_rows[query]);
    });
  }
}

template <int index, int columns>
constexpr TileKernels kernels_of() {
  if constexpr (forms[index].loop_order == LoopOrder::keys_outside) {
    return {f_keys_outside<index, columns>};
  } else {
    return {f_queries_outside<index, columns>};
  }
}
template <int index>
constexpr std::array variants_of{RegisterVariant{TM, TN, 8, 1, kernels_of<index, 8>()},
                                 RegisterVariant{TM, TN, 16, 1, kernels_of<index, 16>()}};
constexpr std::array variants{variants_of<0>, variants_of<1>, variants_of<2>,
                              variants_of<3>, variants_of<4>, variants_of<5>,
                              variants_of<6>, variants_of<7>, variants_of<8>};

Plan with_form(Plan plan, const Form& form) {
  plan.normalise = form.normalise;
  plan.masked_tiles = form.masked_tiles;
  plan.exp = form.exp;
  plan.passes = form.passes;
  plan.loop_order = form.loop_order;
  plan.query_reads = form.reads_queries_again ? std::int64_t{QueryReads::every_tile} : 0;
  return plan;
}

/// Index of the Plan's Form, or nothing.
std::optional<std::size_t> form_of(const Plan& plan) {
  for (std::size_t i = 0; i < std::size(forms); ++i) {
    if (with_form(plan, forms[i]) == plan) return i;
  }
  return std::nullopt;
}

std::int64_t shared_floats(const Problem& problem, const Plan& plan,
                           const RegisterVariant& variant) {
  const auto [Br, Bc] = std::pair(plan.query_tile, plan.key_tile);
  const std::int64_t K = Bc * (problem.head_dim + 1);
  const std::int64_t V = Bc * value_stride(problem, plan, variant);
  return Br * problem.head_dim + K + V + Br * (Bc + 1);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto form = form_of(plan);
  if (!form) {
    return "the choices are " + to_string(plan) +
           "; allowed: " + to_string(with_form({}, forms[0])) +
           " with one of them changed, and normalise=every_step loop_order=keys_outside";
  }
  if (plan.grid_order != 0 || plan.scheduling != 0) {
    return "the kernel has one grid for each loop order; leave grid_order and scheduling at 0";
  }
  // A subnormal factor has lost more than its relative rounding error.
  if (plan.exp == ExpChoice::exp2 && problem.scale != 0 &&
      !std::isnormal(problem.scale * std::numbers::log2e_v<float>)) {
    return "exp is exp2 and scale times log2(e) subnormal or infinite; allowed: 0 and normal "
           "numbers";
  }
  auto reason = why_register_tiles_do_not_fit(variants[*form], shared_floats, problem, plan);
  return reason ? reason : why_rows_are_not_shuffled(plan);
}

std::vector<Plan> plans(const Problem& problem) {
  constexpr std::array<std::array<std::int64_t, 2>, 3> tiles{{{32, 32}, {16, 64}, {64, 32}}};
  std::vector<Plan> all;
  for (const Form& form : forms) {
    for (const auto& [query_tile, key_tile] : tiles) {
      const Plan plan = with_form(
          {.query_tile = query_tile, .key_tile = key_tile, .thread_rows = TM, .thread_keys = TN},
          form);
      if (!unsupported(problem, plan)) all.push_back(plan);
    }
  }
  return all;
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan precision = shuffled_rows_precision(problem, plan);
  if (plan.normalise == Normalise::every_step) precision.rescale = Rescale::normalised_steps;
  if (plan.passes == Passes::two) precision.rescale = Rescale::none;
  if (plan.exp == ExpChoice::library) precision.exp = library_expf();
  if (plan.exp == ExpChoice::exp2) {
    precision.exp = exp2_folded();
    precision.lse = LseForm::log2;
  }
  return precision;
}

const KernelRegistration registration{
    {.name = "f_controlled_pairs",
     .summary = "one register-tile kernel whose Plan changes one choice of the algorithm at a time",
     .source = "F1, F2, O4, O5, O7, O8, D6, M3, P8",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes =
         [](const Problem& problem, const Plan& plan) {
           const bool is_fa1 = plan.loop_order == LoopOrder::keys_outside;
           return is_fa1 ? row_state_bytes(problem, plan) : 0;
         },
     .launch =
         [](const ForwardArguments& a, Device& device) {
           const RegisterVariant& variant =
               *find_variant(variants[*form_of(a.plan)], a.problem, a.plan);
           TileNeeds needs = register_needs(shared_floats, a.problem, a.plan, variant);
           if (a.plan.loop_order == LoopOrder::keys_outside) {
             needs.grid_x = a.problem.batch * a.problem.query_heads;
           }
           launch_output_tiles(variant.kernels, needs, a, device);
         }}};

}  // namespace
}  // namespace attest
