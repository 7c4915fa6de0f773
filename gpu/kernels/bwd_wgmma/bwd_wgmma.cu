// The family as a kernel under test: which Plans it offers, what it cannot run, which roundings it
// performs. The algorithm is in consumer.cuh and loader.cuh; what is compiled, in a file for each
// head dim; the README names the pieces and what was measured.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "core/attention/backward_roundings.hpp"
#include "core/operations/backward_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/backward_sinks.cuh"
#include "gpu/kernels/bwd_wgmma/ranges.cuh"
#include "gpu/kernels/bwd_wgmma/variant.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/elementary_error.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tensor_map.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 256;  // and value_dim
constexpr std::int64_t largest_head_dim_of_slopes = 128;
constexpr std::int64_t largest_length = std::int64_t{1} << 28;  // sums of lengths are in 32 bits
constexpr std::int64_t largest_tiles = std::int64_t{1} << 30;

/// Variants for rows of so many columns, of Q and K or of V, the wider ones.
template <typename T>
std::span<const BwdVariant> variants_of(std::int64_t columns) {
  if (columns <= 64) return bwd_variants<this_executor, T, 64>();
  if (columns <= 128) return bwd_variants<this_executor, T, 128>();
  if (columns <= 192) return bwd_variants<this_executor, T, 192>();
  return bwd_variants<this_executor, T, 256>();
}

std::span<const BwdVariant> variants(const Problem& problem) {
  return with_sixteen_bits(problem.element_type, [&]<typename T>(std::type_identity<T>) {
    return variants_of<T>(std::max(problem.head_dim, problem.output_dim()));
  });
}

/// The fields of a Plan that choose the variant.
Plan plan_of(const BwdVariant& v) {
  return {.query_tile = bwd_query_tile,
          .key_tile = v.key_tile,
          .warps = v.threads / 32,
          .stages = 2,
          .overlap = v.choice.overlap ? Overlap::yes : Overlap::no,
          .dq_sum = v.choice.in_units ? DqSum::s32 : DqSum::fp32};
}

const BwdVariant* find_variant(const Problem& problem, const Plan& plan) {
  Plan tiles = plan;
  tiles.grid_order = tiles.group = tiles.scheduling = 0;
  for (const BwdVariant& v : variants(problem)) {
    if (v.choice.softcap == (problem.softcap != 0) && plan_of(v) == tiles) return &v;
  }
  return nullptr;
}

std::int64_t row_tiles(const Problem& problem) {
  return ceil_div(problem.query_len, bwd_query_tile);
}
std::int64_t planes(const Problem& problem) {
  return problem.batch * problem.query_heads;
}
std::int64_t key_tiles(const Problem& problem, const Plan& plan) {
  return problem.batch * problem.kv_heads * ceil_div(problem.key_len, plan.key_tile);
}

std::int64_t key_blocks(const Problem& problem) {
  return ceil_div(problem.key_len, bwd_key_block);
}

/// True if there are queries, and the keys that they see follow from more than their positions.
bool has_ranges(const Problem& problem) {
  return problem.query_len > 0 && (problem.prefix_seed != 0 || problem.document_seed != 0);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto outside = [](const char* what, std::int64_t got, const std::string& allowed) {
    return std::string(what) + " is " + std::to_string(got) + "; allowed: " + allowed;
  };
  for (const auto& [name, columns] :
       {std::pair("head_dim", problem.head_dim), std::pair("value_dim", problem.output_dim())}) {
    if (columns > largest_head_dim) {
      return outside(name, columns, "1 to " + std::to_string(largest_head_dim));
    }
  }
  const std::int64_t wider = std::max(problem.head_dim, problem.output_dim());
  if (problem.slopes != Slopes::none && wider > largest_head_dim_of_slopes) {
    return outside("with slopes the wider of head_dim and value_dim", wider,
                   "up to " + std::to_string(largest_head_dim_of_slopes));
  }
  const std::int64_t longest = std::max(problem.query_len, problem.key_len);
  if (longest >= largest_length) {
    return outside("the number of queries or keys", longest,
                   "below " + std::to_string(largest_length));
  }
  if (has_ranges(problem) && problem.batch * longest >= largest_tiles) {
    return outside("with prefixes or documents the number of queries or keys of all entries",
                   problem.batch * longest, "below " + std::to_string(largest_tiles));
  }
  if (find_variant(problem, plan) == nullptr) {
    std::string allowed;
    for (const BwdVariant& v : variants(problem)) {
      if (v.choice.softcap != (problem.softcap != 0)) continue;
      if (!allowed.empty()) allowed += "; ";
      allowed += to_string(plan_of(v));
    }
    return "the plan is " + to_string(plan) +
           "; compiled for this problem: " + (allowed.empty() ? "none" : allowed);
  }
  const std::int64_t tiles =
      std::max(planes(problem) * row_tiles(problem), key_tiles(problem, plan));
  if (tiles >= largest_tiles) {
    return outside("the number of tiles", tiles, "below " + std::to_string(largest_tiles));
  }
  const std::int64_t parts = ceil_div(problem.key_len, plan.key_tile);
  if (plan.dq_sum == DqSum::s32 && parts > most_dq_parts) {
    return outside("the number of key tiles with dq_sum=s32", parts,
                   "up to " + std::to_string(most_dq_parts));
  }
  if (plan.grid_order != 0 && plan.grid_order != GridOrder::longest_first) {
    return "grid_order is another than longest_first; allowed: longest_first or none";
  }
  if ((plan.grid_order == 0) != (plan.group == 0) || plan.group < 0) {
    return outside("group", plan.group, "from 1 on with grid_order longest_first, 0 without");
  }
  if (plan.scheduling != Scheduling::one_tile && plan.scheduling != Scheduling::persistent) {
    return outside("scheduling", plan.scheduling, "one_tile and persistent");
  }
  return std::nullopt;
}

/// Heads whose tiles are worked on side by side under a mask, the first the one to take without a
/// reason: long tiles last would leave most of the GPU idle at the end, and Q, dO and the sums of
/// dQ of many long heads do not stay in the L2 cache.
std::array<std::int64_t, 3> sections(const Problem& problem) {
  constexpr std::int64_t long_heads = 8192;
  if (problem.query_len >= long_heads) return {4, 16, 1};
  return {16, 4, 1};
}

std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> all;
  for (const BwdVariant& v : variants(problem)) {
    Plan plan = plan_of(v);
    for (const std::int64_t scheduling : {Scheduling::persistent, Scheduling::one_tile}) {
      plan.scheduling = scheduling;
      const auto add = [&](std::int64_t order, std::int64_t group) {
        plan.grid_order = order;
        plan.group = group;
        if (!unsupported(problem, plan)) all.push_back(plan);
      };
      if (problem.mask == Mask::none) add(0, 0);
      for (const std::int64_t heads : sections(problem)) add(GridOrder::longest_first, heads);
      if (problem.mask != Mask::none) add(0, 0);
    }
  }
  return all;
}

/// The parts of the workspace, in floats.
struct Workspace {
  std::int64_t dq, vector;
  std::int64_t key_blocks;  ///< of all KV heads; 0 but in units
  std::int64_t ranges;      ///< of rows, keys and key tiles, BwdSeen each; 0 where masks say it
};
Workspace workspace(const Problem& problem, const Plan& plan) {
  const BwdVariant* const v = find_variant(problem, plan);
  if (v == nullptr) return {};
  const bool in_units = v->choice.in_units;
  const std::int64_t tiles = planes(problem) * row_tiles(problem);
  const int panel_words = in_units ? bwd_dq_panel_words<true> : bwd_dq_panel_words<false>;
  return {tiles * (v->choice.dim / 64) * panel_words, tiles * bwd_query_tile,
          in_units ? problem.batch * problem.kv_heads * key_blocks(problem) : 0,
          has_ranges(problem) ? problem.batch * (problem.query_len + problem.key_len +
                                                 ceil_div(problem.key_len, plan.key_tile))
                              : 0};
}
std::size_t workspace_bytes(const Problem& problem, const Plan& plan) {
  const Workspace w = workspace(problem, plan);
  const std::int64_t of_units = plan.dq_sum == DqSum::s32 ? w.vector : 0;
  return static_cast<std::size_t>(w.dq + 2 * w.vector + of_units +
                                  2 * w.key_blocks * (bwd_key_block + 1) + 2 * w.ranges) *
         sizeof(float);
}
BwdSums sums_in(void* memory, const Problem& problem, const Plan& plan) {
  const Workspace w = workspace(problem, plan);
  BwdSums sums{};
  sums.dq = static_cast<float*>(memory);
  sums.lse = sums.dq + w.dq;
  sums.delta = sums.lse + w.vector;
  sums.tiles = static_cast<int>(row_tiles(problem));
  if (has_ranges(problem)) {  // behind all else
    sums.keys_of_rows =
        reinterpret_cast<BwdSeen*>(sums.dq + workspace_bytes(problem, plan) / 4) - w.ranges;
    sums.rows_of_keys = sums.keys_of_rows + problem.batch * problem.query_len;
    sums.row_tiles = sums.rows_of_keys + problem.batch * problem.key_len;
  }
  if (plan.dq_sum != DqSum::s32) return sums;
  sums.units_in_one = sums.delta + w.vector;
  sums.key_sizes = reinterpret_cast<float2*>(sums.units_in_one + w.vector);
  sums.block_sizes = sums.key_sizes + w.key_blocks * bwd_key_block;
  sums.key_blocks = static_cast<int>(key_blocks(problem));
  return sums;
}
std::size_t counter_bytes(const Problem& /*problem*/, const Plan& plan) {
  return plan.scheduling == Scheduling::persistent ? 2 * sizeof(unsigned) : 0;
}

/// The map of a tensor. Nothing is read of a tensor without rows, but its map must be one.
TensorMap map_of(const BackwardArguments& a, const void* tensor, const Shape& shape,
                 const Strides& strides, std::int64_t box_rows) {
  const bool is_empty = shape[0] * shape[2] == 0 || (shape[1] > 1 && strides.head == 0);
  return tensor_map({.first = is_empty ? a.q : tensor,
                     .type = a.problem.element_type,
                     .batch = is_empty ? 1 : shape[0],
                     .heads = is_empty ? 1 : shape[1],
                     .rows = is_empty ? 1 : shape[2],
                     .columns = shape[3],
                     .strides = strides,
                     .box_rows = box_rows});
}

BwdParameters parameters(const BackwardArguments& a, const BwdVariant& v) {
  const Problem& problem = a.problem;
  const bool is_packed = a.query_starts != nullptr;
  const auto map = [&](const void* tensor, Shape shape, std::int64_t packed_rows,
                       const Strides& strides, std::int64_t box_rows) {
    // What lies behind an entry is weighed by 0; behind the last one is nothing.
    if (is_packed) shape = {1, shape[1], packed_rows, shape[3]};
    return map_of(a, tensor, shape, strides, box_rows);
  };
  const std::int64_t rows = is_packed ? query_starts(problem).back() : 0;
  const std::int64_t keys = is_packed ? key_starts(problem).back() : 0;
  BwdParameters p{};
  p.q = map(a.q, query_shape(problem), rows, a.q_strides, bwd_query_tile);
  p.d_o = map(a.d_o, output_shape(problem), rows, a.do_strides, bwd_query_tile);
  p.k = map(a.k, key_shape(problem), keys, a.k_strides, v.key_tile);
  p.v = map(a.v, value_shape(problem), keys, a.v_strides, v.value_keys);
  p.dk = a.dk;
  p.dv = a.dv;
  p.dk_strides = a.dk_strides;
  p.dv_strides = a.dv_strides;
  p.sums = sums_in(a.workspace, problem, a.plan);
  p.query_starts = a.query_starts;
  p.key_starts = a.key_starts;
  p.key_mask = a.key_mask;
  p.problem = problem;
  p.batch = static_cast<int>(problem.batch);
  p.heads = static_cast<int>(problem.query_heads);
  p.kv_heads = static_cast<int>(problem.kv_heads);
  p.group = p.heads / p.kv_heads;
  p.queries = static_cast<int>(problem.query_len);
  p.keys = static_cast<int>(problem.key_len);
  p.columns = static_cast<int>(problem.head_dim);
  p.value_columns = static_cast<int>(problem.output_dim());
  p.tiles = static_cast<int>(key_tiles(problem, a.plan));
  p.key_tiles = static_cast<int>(ceil_div(problem.key_len, v.key_tile));
  p.section = static_cast<int>(a.plan.group);
  p.c = (problem.softcap != 0 ? problem.softcap : problem.scale) * bwd_log2_e;
  p.per_score = problem.softcap != 0 ? problem.scale / problem.softcap : 0.0F;
  p.scale = problem.scale;
  p.slopes = a.slopes;
  p.counters = a.plan.scheduling == Scheduling::persistent ? a.counters : nullptr;
  return p;
}

void run(const BackwardArguments& a, Device& device) {
  const BwdVariant& v = *find_variant(a.problem, a.plan);
  const BwdParameters p = parameters(a, v);
  const dim3 row_blocks(static_cast<unsigned>(planes(a.problem) * row_tiles(a.problem)));
  const dim3 prepare_threads(bwd_prepare_threads);
  launch_ranges<this_executor>(a, p.sums, device);
  const std::int64_t blocks_of_keys = workspace(a.problem, a.plan).key_blocks;
  if (row_blocks.x > 0 && blocks_of_keys > 0) {
    launch(v.key_sizes, dim3(static_cast<unsigned>(blocks_of_keys)), prepare_threads,
           bwd_key_block * sizeof(float2), device, a, p.sums);
    launch_dependent(v.prepare, row_blocks, prepare_threads, 0, device, a, p.sums);
  } else if (row_blocks.x > 0) {
    launch(v.prepare, row_blocks, prepare_threads, 0, device, a, p.sums);
  }
  const dim3 threads(static_cast<unsigned>(v.threads));
  const auto shared_bytes = static_cast<std::size_t>(v.shared_bytes);
  std::int64_t blocks = p.tiles;
  if (p.counters != nullptr) {
    blocks = std::min(blocks, resident_blocks(v.kernel, threads, shared_bytes, device));
  }
  if (blocks > 0) {
    launch_dependent(v.kernel, dim3(static_cast<unsigned>(blocks)), threads, shared_bytes, device,
                     p);
  }
  if (row_blocks.x > 0) {
    const auto bytes = static_cast<std::size_t>(bwd_query_tile * v.choice.dim * 2);
    launch_dependent(v.convert, row_blocks, dim3(warpgroup_threads), bytes, device, a, p.sums);
  }
  launch_sink_gradients<this_executor>(
      a, {p.sums.lse, p.sums.delta, std::int64_t{p.sums.tiles} * bwd_query_tile}, device);
}

BackwardRoundings precision(const Problem& problem, const Plan& plan) {
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  const std::int64_t tiles = std::max<std::int64_t>(1, row_tiles(problem) * group);
  const BwdVariant* const v = find_variant(problem, plan);
  const bool is_wide = v != nullptr && v->is_wide;
  return {.score = hopper(),
          .product = hopper(),
          .sums = hopper(),
          .scale_after_dot = problem.softcap != 0,
          .softcap_error = tanh_error + 2 * 0x1p-24,
          .exp = ex2_approx(),
          .lse = LseForm::log2,
          // A lane's products, then a tree of 32 lanes, or of 16 at the most.
          .delta_chain = 8 + (is_wide ? 5 : 4),
          .weight_format = problem.element_type,
          .dscore_format = problem.element_type,
          .dscore_of_rounded_weights = is_wide,
          .dq_chain = plan.key_tile,
          // The sums begin with a 0 in memory.
          .dq_parts = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile)),
          .sums_dq_in_units = plan.dq_sum == DqSum::s32,
          .kv_chain = tiles * bwd_query_tile,
          .kv_tiles = tiles,
          .output = problem.element_type,
          .flushes_subnormals = true};
}

KernelInfo kernel() {
  KernelInfo info;
  info.operation = &backward_operation;
  info.name = "bwd_wgmma";
  info.summary =
      "gradients on Hopper: wgmma, TMA, P and dS in registers, dQ summed in memory by "
      "the copy engine";
  info.source = "claims B1, B2 [FA3 3.1, FA2]";
  info.executor = this_executor;
  info.element_types = {ElementType::fp16, ElementType::bf16};
  info.masks.assign(all_masks().begin(), all_masks().end());
  info.features = {.no_queries = true,
                   .value_dim = true,
                   .softcap = true,
                   .lengths = true,
                   .padding = true,
                   .lse_gradient = true,
                   .sinks = true,
                   .slopes = true,
                   .prefix = true,
                   .documents = true};
  // Blocks add to dQ in the order in which they come.
  info.plan_depends_on_order = [](const Plan& plan) { return plan.dq_sum != DqSum::s32; };
  info.ignores_hidden_nan = false;
  info.layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16};
  info.unavailable = [] { return why_not_hopper(); };
  info.compute_capabilities = hopper_alone;
  info.precision = precision;
  info.plans = plans;
  info.unsupported = unsupported;
  info.workspace_bytes = workspace_bytes;
  info.counter_bytes = counter_bytes;
  info.launch = run;
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
