// The family as a kernel under test: which Plans it offers, what it cannot run, which roundings it
// performs. The algorithm is in tile.cuh; what is compiled, in a file for each head dim; the README
// names the Plans of T1 to T4.
#include <algorithm>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/fa2_mma/variant.cuh"
#include "gpu/kernels/few_queries.hpp"
#include "gpu/kernels/key_splits.cuh"
#include "gpu/primitives/cuda_type.cuh"

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 256;
constexpr std::int64_t largest_splits = 256;
constexpr std::int64_t largest_length = std::int64_t{1}
                                        << 30;  // rows and keys are counted in 32 bits

template <typename T>
std::span<const Fa2Variant> variants_of(std::int64_t head_dim) {
  if (head_dim <= 32) return fa2_variants<this_executor, T, 32>();
  if (head_dim <= 64) return fa2_variants<this_executor, T, 64>();
  if (head_dim <= 96) return fa2_variants<this_executor, T, 96>();
  if (head_dim <= 128) return fa2_variants<this_executor, T, 128>();
  return fa2_variants<this_executor, T, 256>();
}

std::span<const Fa2Variant> variants(const Problem& problem) {
  const std::int64_t dim = std::max(problem.head_dim, problem.output_dim());
  return with_sixteen_bits(problem.element_type,
                           [&]<typename T>(std::type_identity<T>) { return variants_of<T>(dim); });
}

Plan plan_of(const Fa2Variant& v) {
  return {.query_tile = v.query_tile, .key_tile = v.key_tile, .warps = v.warps, .stages = v.stages};
}

const Fa2Variant* find_variant(const Problem& problem, const Plan& plan) {
  for (const Fa2Variant& v : variants(problem)) {
    if (v.query_tile == plan.query_tile && v.key_tile == plan.key_tile && v.warps == plan.warps &&
        v.stages == plan.stages) {
      return &v;
    }
  }
  return nullptr;
}

/// True if only the kernels with score modifications take the problem.
bool is_modified(const Problem& problem) {
  return has_modifications(problem) || problem.prefix_seed != 0 || problem.document_seed != 0;
}

/// Positive scales by which the numbers that are added to scores are divided, in fp32: beyond, the
/// quotient, or its sum with a dot product, could leave fp32 where the score does not.
constexpr float least_divisor = 0x1p-64F, largest_divisor = 0x1p64F;

/// True if numbers are added to scores that have no such scale.
bool has_far_scale(const Problem& problem) {
  if (problem.slopes == Slopes::none && problem.bias == Bias::none) return false;
  return problem.scale > 0 && !(least_divisor <= problem.scale && problem.scale <= largest_divisor);
}

/// True if only the general kernels, those with score modifications among them, take the problem
/// and Plan.
bool is_general(const Problem& problem, const Plan& plan) {
  return is_modified(problem) || is_window(problem.mask) || problem.softcap != 0.0F ||
         problem.length_seed != 0 || problem.padding_seed != 0 || problem.query_len == 0 ||
         plan.pack_gqa == PackGqa::yes || plan.key_splits > 1 ||
         !(problem.scale * std::numbers::log2e_v<float> > 0.0F);
}

bool divides_every_step(const Plan& plan) {
  return plan.normalise == Normalise::every_step;
}

/// Kernels that run dense problems.
const TileKernels& dense_kernels(const Fa2Variant& v, const Plan& plan) {
  return divides_every_step(plan) ? v.every_step : v.dense;
}

/// Output tiles: with packed rows those of a kv head, whose query heads' rows stand together.
Fa2Grid grid_of(const Problem& problem, const Plan& plan) {
  const std::int64_t group =
      plan.pack_gqa == PackGqa::yes ? problem.query_heads / problem.kv_heads : 1;
  const std::int64_t splits = std::max<std::int64_t>(1, plan.key_splits);
  return {{problem.batch * problem.query_heads / group,
           ceil_div(problem.query_len * group, plan.query_tile) * splits},
          splits};
}

/// Blocks of one launch.
BlockGrid blocks_of(const Plan& plan, const Fa2Grid& grid) {
  switch (plan.grid_order) {
    case GridOrder::launch_per_head:
      return {grid.tiles.tiles, 1};
    case GridOrder::two_dimensional:
      return {grid.tiles.tiles, grid.tiles.heads};
    default:
      return {grid.tiles.size(), 1};
  }
}

std::string sizes_of(const Problem& problem, bool (*is_offered)(const Fa2Variant&)) {
  std::string sizes;
  for (const Fa2Variant& v : variants(problem)) {
    if (!is_offered(v)) continue;
    if (!sizes.empty()) sizes += "; ";
    sizes += to_string(plan_of(v));
  }
  return sizes;
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto outside = [](const char* what, std::int64_t got, const std::string& allowed) {
    return std::string(what) + " is " + std::to_string(got) + "; allowed: " + allowed;
  };
  const std::string dims = "1 to " + std::to_string(largest_head_dim);
  if (problem.head_dim > largest_head_dim) return outside("head_dim", problem.head_dim, dims);
  if (problem.output_dim() > largest_head_dim) {
    return outside("value_dim", problem.output_dim(), dims);
  }
  const std::int64_t longest =
      std::max(problem.query_len * (problem.query_heads / problem.kv_heads), problem.key_len);
  if (longest >= largest_length) {
    return outside("the number of keys, or of rows that share them,", longest,
                   "below " + std::to_string(largest_length));
  }
  const Fa2Variant* const v = find_variant(problem, plan);
  if (v == nullptr) {
    return "the plan is " + to_string(plan) + "; compiled for this head_dim: " +
           sizes_of(problem, [](const Fa2Variant&) { return true; });
  }
  if (plan.key_splits < 0 || plan.key_splits > largest_splits) {
    return outside("key_splits", plan.key_splits, "0 to " + std::to_string(largest_splits));
  }
  if (plan.pack_gqa < 0 || plan.pack_gqa > PackGqa::yes) {
    return outside("pack_gqa", plan.pack_gqa, "0 to " + std::to_string(PackGqa::yes));
  }
  if (plan.normalise < 0 || plan.normalise > Normalise::every_step) {
    return outside("normalise", plan.normalise, "0 to " + std::to_string(Normalise::every_step));
  }
  const bool needs_general = is_general(problem, plan);
  if (divides_every_step(plan) && (needs_general || v->every_step.one_tile == nullptr)) {
    const std::string sizes = sizes_of(
        problem, [](const Fa2Variant& other) { return other.every_step.one_tile != nullptr; });
    return "the plan is " + to_string(plan) +
           "; every_step is compiled for dense problems, of this element type and head_dim: " +
           (sizes.empty() ? "not at all" : sizes);
  }
  if (is_modified(problem) && v->modified == nullptr) {
    return "the plan is " + to_string(plan) +
           "; compiled for sinks, slopes, biases, prefixes, documents and dropout: " +
           sizes_of(problem, [](const Fa2Variant& other) { return other.modified != nullptr; });
  }
  if (has_far_scale(problem)) {
    return "the problem is " + to_string(problem) +
           "; allowed with slopes or a bias: scales up to 0, and from 2^-64 to 2^64";
  }
  if (needs_general && v->general == nullptr) {
    return "the plan is " + to_string(plan) +
           "; compiled for windows, softcap, lengths, padding, packed rows, key splits and scales "
           "that are not positive: " +
           sizes_of(problem, [](const Fa2Variant& other) { return other.general != nullptr; });
  }
  const BlockGrid grid = blocks_of(plan, grid_of(problem, plan));
  if (grid.x > max_grid_x || grid.y > max_grid_y) {
    return "the grid is " + std::to_string(grid.x) + " x " + std::to_string(grid.y) +
           " blocks; allowed: " + std::to_string(max_grid_x) + " x " + std::to_string(max_grid_y);
  }
  if (plan.scheduling == Scheduling::persistent &&
      (needs_general || dense_kernels(*v, plan).persistent == nullptr)) {
    return "scheduling is persistent; compiled with the first plan's tiles, for dense problems";
  }
  return why_order_does_not_fit(plan);
}

/// Plans for few queries, the one to take without a table first; none where the rows of a kv head
/// fill more than one tile. Blocks are then few, and what they read is all that counts.
std::vector<Plan> plans_for_few_queries(const Problem& problem) {
  constexpr std::int64_t slots = 264;  // two blocks on each of an H200's SMs
  const auto shortest = std::ranges::min_element(variants(problem), {}, [](const Fa2Variant& v) {
    return v.general == nullptr ? largest_length : v.query_tile;
  });
  if (shortest->general == nullptr || problem.query_len == 0 ||
      rows_of_kv_head(problem) > shortest->query_tile) {
    return {};
  }
  std::vector<Plan> all;
  for (const std::int64_t splits :
       splits_to_try(problem.batch * problem.kv_heads, problem.key_len, slots)) {
    Plan plan = plan_of(*shortest);
    plan.key_splits = splits;
    plan.pack_gqa = problem.query_heads > problem.kv_heads ? PackGqa::yes : PackGqa::no;
    if (!unsupported(problem, plan)) all.push_back(plan);
  }
  return all;
}

std::vector<Plan> plans(const Problem& problem) {
  if (problem.head_dim > largest_head_dim || problem.output_dim() > largest_head_dim) return {};
  std::vector<Plan> tiles;
  for (const Fa2Variant& v : variants(problem)) {
    if (!unsupported(problem, plan_of(v))) tiles.push_back(plan_of(v));
  }
  if (tiles.empty()) return {};
  const Plan first = tiles.front(),
             last_general = tiles[std::min<std::size_t>(1, tiles.size() - 1)];
  std::vector<Plan> all = plans_for_few_queries(problem);
  if (problem.mask != Mask::none) {
    // Long tiles last would leave most of the GPU idle at the end; few heads at a time keep their K
    // and V in the L2 cache.
    all.push_back(first);
    all.back().grid_order = GridOrder::longest_first;
    all.back().group = 4;
  }
  for (const Plan& plan : with_grid_orders(tiles, problem, unsupported)) all.push_back(plan);
  const auto add = [&](Plan plan, std::int64_t splits, std::int64_t packs) {
    plan.key_splits = splits;
    plan.pack_gqa = packs;
    if (!unsupported(problem, plan)) all.push_back(plan);
  };
  add(last_general, 2, 0);
  add(first, 3, PackGqa::yes);
  add(last_general, 0, PackGqa::yes);
  add(last_general, 7, PackGqa::no);
  for (const Fa2Variant& v : variants(problem)) {
    if (v.every_step.one_tile == nullptr) continue;
    // The pair that differs in nothing else.
    for (const auto normalise : {Normalise::at_the_end, Normalise::every_step}) {
      Plan plan = plan_of(v);
      plan.normalise = normalise;
      if (!unsupported(problem, plan)) all.push_back(plan);
    }
  }
  return all;
}

std::size_t workspace_bytes(const Problem& problem, const Plan& plan) {
  return plan.key_splits > 1 ? partial_result_bytes(problem, plan)
                             : tile_counter_bytes(problem, plan);
}

void run_general(const Fa2Variant& v, const ForwardArguments& a, Device& device) {
  const Fa2Grid grid = grid_of(a.problem, a.plan);
  const BlockGrid blocks = blocks_of(a.plan, grid);
  if (grid.tiles.size() == 0) return;
  const std::int64_t launches =
      a.plan.grid_order == GridOrder::launch_per_head ? grid.tiles.heads : 1;
  for (std::int64_t i = 0; i < launches; ++i) {
    launch(is_modified(a.problem) ? v.modified : v.general,
           dim3(static_cast<unsigned>(blocks.x), static_cast<unsigned>(blocks.y)),
           dim3(static_cast<unsigned>(32 * v.warps)), static_cast<std::size_t>(v.shared_bytes),
           device, a, grid, i * blocks.x);
  }
  if (grid.splits == 1) return;
  launch_combine_splits<this_executor>(a, device);
  if (a.sinks == nullptr) return;
  launch(fa2_sinks_alone<this_executor>,
         dim3(static_cast<unsigned>(ceil_div(a.problem.rows(), 128))), dim3(128), 0, device, a);
}

void run(const ForwardArguments& a, Device& device) {
  const Fa2Variant& v = *find_variant(a.problem, a.plan);
  if (is_general(a.problem, a.plan)) {
    run_general(v, a, device);
    return;
  }
  const BlockGrid grid = blocks_of(a.plan, grid_of(a.problem, a.plan));
  launch_output_tiles(dense_kernels(v, a.plan),
                      {.threads = 32 * v.warps,
                       .shared_floats = v.shared_bytes / 4,
                       .grid_x = grid.x,
                       .grid_y = grid.y},
                      a, device);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  // A lane adds two keys of every eight to one sum; at the end four lanes meet, and the splits.
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile));
  const std::int64_t splits = std::max<std::int64_t>(1, plan.key_splits);
  return {.score = hopper(),
          .value = hopper(),
          // A positive scale is part of the exponent's fused product; others multiply before.
          .scale_after_dot = !(problem.scale > 0.0F) || problem.softcap != 0.0F,
          // tanh, the quotient in its argument, which tanh damps by half, and the product.
          .softcap_error = tanh_error + 2 * 0x1p-24,
          .exp = ex2_approx(),
          .reference_lag = static_cast<double>(reference_lag),
          .weight_format = problem.element_type,
          .rescale = divides_every_step(plan) ? Rescale::normalised_steps : Rescale::deferred,
          .blocks = blocks,
          .splits = splits,
          .normaliser_chain = blocks * plan.key_tile / 4 + 2 + splits,
          .division_error = 0x1p-23,  // the reciprocal and the product
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
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right, Mask::window_top_left,
               Mask::window_bottom_right},
     .features = {.no_queries = true,
                  .value_dim = true,
                  .softcap = true,
                  .lengths = true,
                  .padding = true,
                  .sinks = true,
                  .slopes = true,
                  .bias = true,
                  .prefix = true,
                  .documents = true,
                  .dropout = true},
     .ignores_hidden_nan = false,
     .compute_capabilities = {.least = 80},
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes = workspace_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
