// fp32 attention on Hopper's tensor cores as a kernel under test: which Plans it offers, what it
// cannot run, which roundings it performs. The README says how the numbers work; split.cuh makes
// the parts, consumer.cuh multiplies them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/fp32_wgmma/parts.cuh"
#include "gpu/kernels/fp32_wgmma/scaling.cuh"
#include "gpu/kernels/fp32_wgmma/variant.cuh"
#include "gpu/primitives/elementary_error.hpp"
#include "gpu/primitives/grid_order_plan.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tensor_map.cuh"

namespace attest {
namespace {

/// Places of what the split leaves in the workspace, in bytes from an address aligned to
/// `alignment`. Parts are [parts, heads, rows, dim] without gaps, so that the copy engine reads
/// them whatever the strides and addresses of the inputs are.
struct SplitWorkspace {
  static constexpr std::size_t alignment = 256;
  static constexpr std::int64_t most_parts = 3;
  std::size_t q, k, v, rows, key_scales, flags, served, served_rows, size;

  SplitWorkspace(const Problem& problem, std::int64_t dim) {
    const std::int64_t heads = problem.batch * problem.query_heads;
    const std::int64_t kv_heads = problem.batch * problem.kv_heads;
    const auto parts = [&](std::int64_t rows_of_all) {
      // One row at least: the copy engine knows no empty tensors.
      return take((rows_of_all > 0 ? rows_of_all : heads) * dim * most_parts * 2);
    };
    q = parts(problem.rows());
    k = parts(kv_heads * problem.key_len);
    v = parts(kv_heads * problem.key_len);
    const auto blocks = [](std::int64_t n, std::int64_t block) { return (n + block - 1) / block; };
    rows = take(problem.rows() * static_cast<std::int64_t>(sizeof(RowScale)));
    key_scales = take(kv_heads * blocks(problem.key_len, split_rows) *
                      static_cast<std::int64_t>(sizeof(KeyScale)));
    flags = take(heads * blocks(problem.query_len, flag_rows) *
                 static_cast<std::int64_t>(sizeof(RowFlags)));
    served = take(heads * static_cast<std::int64_t>(sizeof(int)));
    served_rows = take(problem.rows() * static_cast<std::int64_t>(sizeof(int)));
    size = end_;
  }

 private:
  std::size_t end_ = 0;
  std::size_t take(std::int64_t bytes) {
    const std::size_t begin = end_;
    end_ += (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
    return begin;
  }
};

constexpr std::int64_t largest_head_dim = 128;
constexpr std::int64_t largest_length = std::int64_t{1} << 30;  // lengths are in 32 bits
constexpr std::int64_t largest_stride = std::int64_t{1} << 40;  // of the copy engine, in bytes

SplitKernels kernels_for(const Problem& problem) {
  return problem.head_dim <= 64 ? split_kernels<this_executor, 64>()
                                : split_kernels<this_executor, 128>();
}

Plan plan_of(const SplitKernel& kernel, Products::Value products) {
  return {.query_tile = kernel.query_tile,
          .key_tile = kernel.choice.key_tile,
          .warps = kernel.threads / 32,
          .stages = kernel.choice.stages,
          .ping_pong = kernel.choice.ping_pong ? PingPong::yes : PingPong::no,
          .overlap = kernel.choice.overlap ? Overlap::yes : Overlap::no,
          .delays = kernel.choice.delays ? std::int64_t{Delays::random} : 0,
          .products = products};
}

/// All Plans without an order of the tiles, the first the one to take without a reason.
std::vector<Plan> tile_plans(const SplitKernels& kernels) {
  std::vector<Plan> plans;
  for (const SplitKernel& kernel : kernels.fp16)
    plans.push_back(plan_of(kernel, Products::automatic));
  plans.push_back(plan_of(kernels.bf16, Products::bf16_x6));
  return plans;
}

/// Fields of the Plan that say what a tile is.
Plan tiles_of(Plan plan) {
  plan.grid_order = plan.group = plan.scheduling = 0;
  if (plan.delays == Delays::none) plan.delays = 0;
  return plan;
}

const SplitKernel& fp16_kernel(const SplitKernels& kernels, const Plan& plan) {
  return *std::find_if(kernels.fp16.begin(), kernels.fp16.end(), [&](const SplitKernel& kernel) {
    return plan_of(kernel, Products::automatic) == tiles_of(plan);
  });
}

TileGrid grid_of(const SplitKernel& kernel, const Problem& problem) {
  return {problem.batch * problem.query_heads, ceil_div(problem.query_len, kernel.query_tile)};
}

std::int64_t split_blocks(const Problem& problem) {
  return problem.batch * (problem.query_heads * ceil_div(problem.query_len, split_rows) +
                          problem.kv_heads * ceil_div(problem.key_len, split_rows));
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto outside = [](const std::string& what, std::int64_t got, const std::string& allowed) {
    return what + " is " + std::to_string(got) + "; allowed: " + allowed;
  };
  if (problem.head_dim > largest_head_dim) {
    return outside("head_dim", problem.head_dim,
                   "1 to 128: two tiles of K and V in two or three parts fill shared memory");
  }
  const std::int64_t longest = std::max(problem.query_len, problem.key_len);
  if (longest >= largest_length) {
    return outside("the number of queries or keys", longest,
                   "below " + std::to_string(largest_length));
  }
  const SplitKernels kernels = kernels_for(problem);
  const std::int64_t heads = problem.batch * problem.query_heads;
  const std::int64_t part_bytes = heads * longest * kernels.dim * 2;
  if (part_bytes >= largest_stride) {
    return outside("the size of a part of Q, K or V in bytes", part_bytes,
                   "below " + std::to_string(largest_stride));
  }
  const std::vector<Plan> tiles = tile_plans(kernels);
  if (std::find(tiles.begin(), tiles.end(), tiles_of(plan)) == tiles.end()) {
    std::string allowed;
    for (const Plan& tile : tiles) {
      if (!allowed.empty()) allowed += "; ";
      allowed += to_string(tile);
    }
    return "the plan is " + to_string(plan) + "; allowed, with any grid order: " + allowed;
  }
  if (plan.scheduling == Scheduling::persistent) {
    return "scheduling is persistent; allowed: one_tile";
  }
  // The kernel of the bf16 parts has the smaller query tiles, and so the larger grid.
  const BlockGrid grid = block_grid(problem, plan_of(kernels.bf16, Products::bf16_x6));
  const BlockGrid ordered = block_grid(problem, plan);
  if (std::max(grid.x, split_blocks(problem)) > max_grid_x || ordered.y > max_grid_y) {
    return "the grid is " + std::to_string(std::max(grid.x, split_blocks(problem))) + " x " +
           std::to_string(ordered.y) + " blocks; allowed: " + std::to_string(max_grid_x) + " x " +
           std::to_string(max_grid_y);
  }
  return why_order_does_not_fit(plan);
}

std::vector<Plan> plans(const Problem& problem) {
  if (problem.head_dim > largest_head_dim) return {};
  std::vector<Plan> tiles;
  for (const Plan& plan : tile_plans(kernels_for(problem))) {
    if (!unsupported(problem, plan)) tiles.push_back(plan);
  }
  std::vector<Plan> all;
  if (problem.mask != Mask::none && !tiles.empty()) {
    // Long tiles last would leave most of the GPU idle at the end; few heads at a time keep their K
    // and V in the L2 cache.
    all.push_back(tiles.front());
    all.back().grid_order = GridOrder::longest_first;
    all.back().group = 4;
  }
  for (const Plan& plan : with_grid_orders(tiles, problem, unsupported)) all.push_back(plan);
  return all;
}

std::size_t workspace_bytes(const Problem& problem, const Plan&) {
  return SplitWorkspace(problem, kernels_for(problem).dim).size + SplitWorkspace::alignment;
}

SplitProblem split_problem(const ForwardArguments& a, int dim) {
  const Problem& problem = a.problem;
  const SplitWorkspace at(problem, dim);
  auto* const workspace = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(a.workspace) + SplitWorkspace::alignment - 1) /
      SplitWorkspace::alignment * SplitWorkspace::alignment);
  SplitProblem p{};
  p.q_in = static_cast<const float*>(a.q);
  p.k_in = static_cast<const float*>(a.k);
  p.v_in = static_cast<const float*>(a.v);
  p.o = static_cast<float*>(a.o);
  p.lse = a.lse;
  p.q_parts = workspace + at.q;
  p.k_parts = workspace + at.k;
  p.v_parts = workspace + at.v;
  p.rows = reinterpret_cast<RowScale*>(workspace + at.rows);
  p.key_scales = reinterpret_cast<KeyScale*>(workspace + at.key_scales);
  p.flags = reinterpret_cast<RowFlags*>(workspace + at.flags);
  p.served = reinterpret_cast<int*>(workspace + at.served);
  p.served_rows = reinterpret_cast<int*>(workspace + at.served_rows);
  p.q_strides = a.q_strides;
  p.k_strides = a.k_strides;
  p.v_strides = a.v_strides;
  p.o_strides = a.o_strides;
  p.heads = static_cast<int>(problem.batch * problem.query_heads);
  p.kv_heads = static_cast<int>(problem.batch * problem.kv_heads);
  p.entry_heads = static_cast<int>(problem.query_heads);
  p.entry_kv_heads = static_cast<int>(problem.kv_heads);
  p.queries = static_cast<int>(problem.query_len);
  p.keys = static_cast<int>(problem.key_len);
  p.columns = static_cast<int>(problem.head_dim);
  p.reach = causal_reach(problem, p.queries, p.keys);
  p.scale = std::abs(problem.scale);
  p.c = p.scale * std::numbers::log2e_v<float>;
  p.is_negative = problem.scale < 0.0F;
  p.refuses_all = a.plan.products == Products::bf16_x6;
  p.order = a.plan.grid_order;
  p.order_group = a.plan.group;
  return p;
}

TensorMap map_of_parts(const void* parts, ElementType type, int heads, int rows, int dim,
                       int part_count, int box_rows) {
  const std::int64_t existing = std::max(rows, 1);
  return tensor_map({.first = parts,
                     .type = type,
                     .batch = part_count,
                     .heads = heads,
                     .rows = existing,
                     .columns = dim,
                     .strides = {heads * existing * dim, existing * dim, dim},
                     .box_rows = box_rows});
}

/// Splits, and multiplies the parts, `count` of each number.
void attend(SplitProblem p, const SplitKernel& kernel, void (*split)(SplitProblem),
            ElementType type, int count, const ForwardArguments& a, Device& device) {
  const int dim = kernel.choice.dim;
  p.grid = grid_of(kernel, a.problem);
  p.q = map_of_parts(p.q_parts, type, p.heads, p.queries, dim, count, kernel.query_tile);
  p.k = map_of_parts(p.k_parts, type, p.kv_heads, p.keys, dim, count, kernel.choice.key_tile);
  p.v = map_of_parts(p.v_parts, type, p.kv_heads, p.keys, dim, count, kernel.choice.key_tile);
  launch(split, dim3(static_cast<unsigned>(split_blocks(a.problem))), dim3(split_threads), 0,
         device, p);
  Plan tiles = a.plan;
  tiles.query_tile = kernel.query_tile;
  const BlockGrid grid = block_grid(a.problem, tiles);
  const std::int64_t launches = a.plan.grid_order == GridOrder::launch_per_head ? p.grid.heads : 1;
  for (std::int64_t i = 0; i < launches; ++i) {
    launch(kernel.attend, dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y)),
           dim3(static_cast<unsigned>(kernel.threads)),
           static_cast<std::size_t>(kernel.shared_bytes), device, p, i * grid.x);
  }
}

void run(const ForwardArguments& a, Device& device) {
  const SplitKernels kernels = kernels_for(a.problem);
  const SplitProblem p = split_problem(a, kernels.dim);
  if (!p.refuses_all) {
    attend(p, fp16_kernel(kernels, a.plan), kernels.split_fp16, ElementType::fp16, Fp16Parts::count,
           a, device);
  }
  // Only the rows that the first pass has refused; their parts take the place of those before.
  attend(p, kernels.bf16, kernels.split_bf16, ElementType::bf16, Bf16Parts::count, a, device);
}

/// Exponents of fp16 parts are taken from a number `weight_lead` below the maximum, in units of
/// log2. So many more roundings of numbers up to it there are: of the argument and of the folding
/// in the weights, of r ln 2, and of ln l, which is larger by as much, in the LSE.
ExpMethod leading_exp(double lead) {
  ExpMethod exp = ex2_approx();
  exp.relative_error += lead * 0.6931471805599453 * (exp.argument_error + 3 * 0x1p-24 + ln_error);
  return exp;
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile));
  const bool is_bf16 = plan.products == Products::bf16_x6;
  const Parts bf16{.format = Parts::Format::bf16, .count = Bf16Parts::count};
  const auto fp16 = [](int exponent) {
    return Parts{
        .format = Parts::Format::fp16, .count = Fp16Parts::count, .scaled_to = std::exp2(exponent)};
  };
  // Rows that fp16 parts do not serve have the smaller errors of bf16 parts.
  return {.score = hopper(),
          .value = hopper(),
          .score_parts = is_bf16 ? bf16 : fp16(std::min(query_exponent, key_exponent)),
          .value_parts = is_bf16 ? bf16 : fp16(value_exponent),
          .weight_scale = is_bf16 ? 1.0 : std::exp2(weight_lead),
          .promoted_keys = split_rows,
          .scale_after_dot = is_bf16,
          .exp = is_bf16 ? ex2_approx() : leading_exp(weight_lead),
          .rescale = Rescale::deferred,
          .blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, split_rows)),
          // A lane adds its even and its odd keys of a tile, both, then the tiles; four lanes meet.
          .normaliser_chain = plan.key_tile / 8 + 1 + tiles + 2,
          .division_error = 0x1p-23,  // the reciprocal and the product
          .log_error = ln_error,
          .lse = LseForm::log2,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.name = "fp32_wgmma",
     .summary = "fp32 on Hopper's tensor cores: products of fp16 parts, of bf16 parts where the "
                "range asks for it",
     .source = "Ootomo and Yokota, arXiv 2203.03341 [FA3]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .ignores_hidden_nan = false,
     .unavailable = [] { return why_not_hopper(); },
     .compute_capabilities = hopper_alone,
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes = workspace_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
