// The family as a kernel under test: which Plans it offers, what it cannot run, which roundings it
// performs. The algorithm is in consumer.cuh and transposer.cuh; what is compiled, in a file for
// each head dim; the README names the pieces and what was measured.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "core/operations/quantised_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/fp8_wgmma/variant.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/elementary_error.hpp"
#include "gpu/primitives/grid_order_plan.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tensor_map.cuh"

#ifdef __CUDACC__
#include "gpu/runtime/cuda_error.hpp"
#endif

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 128;
constexpr std::int64_t largest_length = std::int64_t{1} << 30;  // lengths are in 32 bits
constexpr std::int64_t largest_tiles = std::int64_t{1} << 30;
constexpr int warpgroup_rows = 64;
constexpr float log2_e = 1.44269504088896340736F;

/// {tiles taken, blocks that ended} of the launches in flight; the last block of a launch leaves
/// them at 0 again.
constexpr unsigned launches_in_flight = 4096;
__device__ unsigned tile_counters[launches_in_flight][2];

std::span<const Fp8Variant> variants(const Problem& problem) {
  return with_sixteen_bits(problem.element_type, [&]<typename T>(std::type_identity<T>) {
    return problem.head_dim <= 64 ? fp8_variants<this_executor, T, 64>()
                                  : fp8_variants<this_executor, T, 128>();
  });
}

/// Plan of a variant: the fields that choose it.
Plan plan_of(const Fp8Variant& v) {
  return {.query_tile = v.query_tile,
          .key_tile = v.choice.key_tile,
          .warps = v.threads / 32,
          .stages = v.choice.k_stages,
          .ping_pong = v.choice.ping_pong ? PingPong::yes : PingPong::no,
          .overlap = v.choice.overlap ? Overlap::yes : Overlap::no,
          .delays = v.choice.delays ? std::int64_t{Delays::random} : 0};
}

const Fp8Variant* find_variant(const Problem& problem, const Plan& plan) {
  Plan tiles = plan;
  tiles.grid_order = tiles.group = tiles.scheduling = 0;
  if (tiles.delays == Delays::none) tiles.delays = 0;
  for (const Fp8Variant& v : variants(problem)) {
    if (plan_of(v) == tiles) return &v;
  }
  return nullptr;
}

TileGrid grid_of(const Problem& problem, const Plan& plan) {
  return {problem.batch * problem.query_heads, ceil_div(problem.query_len, plan.query_tile)};
}

/// Fa3Parameters::first_row: less the rows of the tiles beyond the queries, in whole warpgroups.
std::int64_t first_row(const Problem& problem, const Plan& plan) {
  if (problem.mask == Mask::none) return 0;
  const std::int64_t rows = ceil_div(problem.query_len, plan.query_tile) * plan.query_tile;
  return (problem.query_len - rows) / warpgroup_rows * warpgroup_rows;
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto outside = [](const char* what, std::int64_t got, const std::string& allowed) {
    return std::string(what) + " is " + std::to_string(got) + "; allowed: " + allowed;
  };
  if (problem.head_dim > largest_head_dim) {
    return outside("head_dim", problem.head_dim, "1 to " + std::to_string(largest_head_dim));
  }
  const std::int64_t longest = std::max(problem.query_len, problem.key_len);
  if (longest >= largest_length) {
    return outside("the number of queries or keys", longest,
                   "below " + std::to_string(largest_length));
  }
  if (find_variant(problem, plan) == nullptr) {
    std::string allowed;
    for (const Fp8Variant& v : variants(problem)) {
      allowed += (allowed.empty() ? "" : "; ") + to_string(plan_of(v));
    }
    return "the plan is " + to_string(plan) + "; compiled for this head_dim: " + allowed;
  }
  const TileGrid grid = grid_of(problem, plan);
  if (grid.size() >= largest_tiles) {
    return outside("the number of output tiles", grid.size(),
                   "below " + std::to_string(largest_tiles));
  }
  if (plan.grid_order == GridOrder::launch_per_head ||
      plan.grid_order == GridOrder::two_dimensional) {
    return "grid_order takes more than one launch or dimension; allowed: all but launch_per_head "
           "and two_dimensional";
  }
  return why_order_does_not_fit(plan);
}

/// Heads whose tiles are worked on side by side under a causal mask, the first the one to take
/// without a reason.
constexpr std::int64_t sections[] = {32, 16, 64};

std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> all;
  if (problem.head_dim > largest_head_dim) return all;
  const auto add = [&](Plan plan) {
    if (!unsupported(problem, plan)) all.push_back(plan);
  };
  for (const Fp8Variant& v : variants(problem)) {
    Plan plan = plan_of(v);
    plan.scheduling = Scheduling::persistent;
    if (problem.mask == Mask::none) {
      add(plan);
      continue;
    }
    plan.grid_order = GridOrder::longest_first;
    for (const std::int64_t heads : sections) {
      plan.group = heads;
      add(plan);
    }
  }
  if (all.empty()) return all;
  Plan first = all.front();
  first.group = 0;
  for (const std::int64_t order :
       {GridOrder::q_fastest, GridOrder::q_slowest, GridOrder::longest_first}) {
    first.grid_order = order;
    first.scheduling = Scheduling::one_tile;
    add(first);
  }
  return all;
}

unsigned* next_counters() {
  static std::atomic<unsigned> launches = 0;
  void* first = tile_counters;
#ifdef __CUDACC__
  ATTEST_CUDA_CHECK(cudaGetSymbolAddress(&first, tile_counters));
#endif
  return static_cast<unsigned*>(first) + std::size_t{2} * (launches++ % launches_in_flight);
}

TensorMap map_of(const QuantisedArguments& a, const void* tensor, const Shape& shape,
                 const Strides& strides, std::int64_t box_rows) {
  // Nothing is read of a tensor without elements, but its map must be one.
  const bool is_empty = shape[0] * shape[2] == 0;
  return tensor_map({.first = is_empty ? a.q : tensor,
                     .type = ElementType::e4m3,
                     .batch = std::max<std::int64_t>(1, shape[0]),
                     .heads = shape[1],
                     .rows = std::max<std::int64_t>(1, shape[2]),
                     .columns = a.problem.head_dim,
                     .strides = is_empty ? Strides{16, 16, 16} : strides,
                     .box_rows = box_rows});
}

Fp8Parameters parameters(const QuantisedArguments& a, const Fp8Variant& v) {
  const Problem& problem = a.problem;
  const Shape queries = query_shape(problem), keys = key_shape(problem);
  Fp8Parameters p{};
  p.q = map_of(a, a.q, queries, a.q_strides, warpgroup_rows);
  p.k = map_of(a, a.k, keys, a.k_strides, v.choice.key_tile);
  p.v = map_of(a, a.v, keys, a.v_strides, v.choice.key_tile);
  p.output = a.o;
  p.o_strides = a.o_strides;
  p.lse = a.lse;
  p.heads = static_cast<int>(problem.query_heads);
  p.group = static_cast<int>(problem.query_heads / problem.kv_heads);
  p.queries = static_cast<int>(problem.query_len);
  p.keys = static_cast<int>(problem.key_len);
  p.columns = static_cast<int>(problem.head_dim);
  p.first_row = static_cast<int>(first_row(problem, a.plan));
  p.reach = causal_reach(problem, p.queries, p.keys);
  p.c = problem.scale * log2_e;
  p.grid = grid_of(problem, a.plan);
  p.splits = 1;
  p.tiles = static_cast<int>(p.grid.size());
  p.order = a.plan.grid_order;
  p.order_group = a.plan.group;
  p.q_scales = RowScales::of(problem.codes.q_scales, a.q_scale, a.q_scale_strides);
  p.k_scales = RowScales::of(problem.codes.k_scales, a.k_scale, a.k_scale_strides);
  p.v_scales = problem.codes.v_scales == Scales::none ? nullptr : a.v_scale;
  p.v_scale_strides = a.v_scale_strides;
  p.v_scale_step = problem.codes.v_scales == Scales::column ? 1 : 0;
  return p;
}

void run(const QuantisedArguments& a, Device& device) {
  const Fp8Variant& v = *find_variant(a.problem, a.plan);
  Fp8Parameters p = parameters(a, v);
  const dim3 threads(static_cast<unsigned>(v.threads));
  const auto shared_bytes = static_cast<std::size_t>(v.shared_bytes);
  std::int64_t blocks = p.tiles;
  if (a.plan.scheduling == Scheduling::persistent) {
    blocks = std::min(blocks, resident_blocks(v.kernel, threads, shared_bytes, device));
    p.counters = next_counters();
  }
  launch(v.kernel, dim3(static_cast<unsigned>(blocks)), threads, shared_bytes, device, p);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  // A lane adds two keys of every eight of a tile, then the tiles; at the end four lanes meet.
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile));
  return {.score = hopper_fp8(),
          .value = hopper_fp8(),
          .weight_scale = 1U << fp8_weight_shift,
          .promoted_keys = plan.key_tile,
          // A positive scale is part of the exponent's fused product; others multiply before.
          .scale_after_dot = !(problem.scale > 0.0F),
          .score_scalings = 2,
          .value_scalings = 1,
          .exp = ex2_approx(),
          .reference_lag = fp8_reference_lag,
          .weight_format = ElementType::e4m3,
          .rescale = Rescale::deferred,
          .blocks = blocks,
          .normaliser_chain = plan.key_tile / 4 + blocks + 2,
          .division_error = 0x1p-23,  // the reciprocal and the product
          .log_error = ln_error,
          .lse = LseForm::log2,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.operation = &quantised_operation,
     .name = "fp8_wgmma",
     .summary =
         "forward in e4m3 on Hopper: fa3_wgmma with 8-bit products, promoted at every key tile",
     .source = "N2 [FA3 3.3]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .codes = {.q = {Code::e4m3},
               .k = {Code::e4m3},
               .v = {Code::e4m3},
               .q_scales = {Scales::head, Scales::none, Scales::block, Scales::row},
               .k_scales = {Scales::head, Scales::none, Scales::block},
               .v_scales = {Scales::head, Scales::none, Scales::column}},
     .ignores_hidden_nan = false,
     .layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16},
     .unavailable = [] { return why_not_hopper(); },
     .compute_capabilities = hopper_alone,
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .first_row = first_row,
     .launch = run}};

}  // namespace
}  // namespace attest
