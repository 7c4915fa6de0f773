// The kernel as one under test: which Plans it offers, what it cannot run, which roundings it
// performs. The algorithm is in kernels.cuh: begin there.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "core/attention/backward_roundings.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/backward_sinks.cuh"
#include "gpu/kernels/bwd_simple/variant.cuh"
#include "gpu/primitives/elementary_error.hpp"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 128;
constexpr std::int64_t largest_length = std::int64_t{1} << 30;  // rows and keys have 32 bits

/// True if pairs are not those of plain attention. Of sinks no pair knows.
bool has_modified_pairs(const Problem& problem) {
  return problem.slopes != Slopes::none || problem.bias != Bias::none || problem.dropout > 0 ||
         problem.prefix_seed != 0 || problem.document_seed != 0 || problem.list_seed != 0;
}

/// Variants of the smallest compiled dim that holds the problem's, with modifications where it has
/// some.
std::vector<BwdVariant> variants(const Problem& problem) {
  const auto all = with_cuda_type(problem.element_type, []<typename T>(std::type_identity<T>) {
    return bwd_variants<this_executor, T>();
  });
  const std::int64_t needed = std::max(problem.head_dim, problem.output_dim());
  std::int64_t dim = largest_head_dim;
  for (const BwdVariant& v : all) {
    if (v.dim >= needed) dim = std::min(dim, v.dim);
  }
  std::vector<BwdVariant> fitting;
  std::ranges::copy_if(all, std::back_inserter(fitting), [&](const BwdVariant& v) {
    return v.dim == dim && v.is_modified == has_modified_pairs(problem);
  });
  return fitting;
}

Plan plan_of(const BwdVariant& v) {
  return {.query_tile = v.query_tile, .key_tile = v.key_tile};
}

std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> all;
  for (const BwdVariant& v : variants(problem)) all.push_back(plan_of(v));
  return all;
}

std::int64_t key_blocks(const Problem& problem, const Plan& plan) {
  return problem.batch * problem.kv_heads * ceil_div(problem.key_len, plan.key_tile);
}
std::int64_t query_blocks(const Problem& problem, const Plan& plan) {
  return problem.batch * problem.query_heads * ceil_div(problem.query_len, plan.query_tile);
}

/// Blocks of the gradient of a bias; 0 without one.
std::int64_t bias_blocks(const Problem& problem, const Plan& plan) {
  const Shape bias = backward_operation[backward::d_bias].shape(problem);
  return bias[0] * bias[1] * ceil_div(bias[2], plan.query_tile) * ceil_div(bias[3], plan.key_tile);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const auto outside = [](const char* what, std::int64_t got, std::int64_t most) {
    return std::string(what) + " is " + std::to_string(got) + "; allowed: up to " +
           std::to_string(most);
  };
  if (problem.head_dim > largest_head_dim) {
    return outside("head_dim", problem.head_dim, largest_head_dim);
  }
  if (problem.output_dim() > largest_head_dim) {
    return outside("value_dim", problem.output_dim(), largest_head_dim);
  }
  const std::int64_t longest = std::max(problem.query_len, problem.key_len);
  if (longest > largest_length) return outside("the number of rows", longest, largest_length);
  const std::vector<Plan> all = plans(problem);
  if (std::ranges::find(all, plan) == all.end()) {
    std::string compiled;
    for (const Plan& one : all) {
      if (!compiled.empty()) compiled += "; ";
      compiled += to_string(one);
    }
    return "the plan is " + to_string(plan) + "; compiled for this problem: " + compiled;
  }
  const std::int64_t blocks =
      std::max({key_blocks(problem, plan), query_blocks(problem, plan), bias_blocks(problem, plan),
                problem.batch * problem.lists(), ceil_div(problem.rows(), delta_warps)});
  if (blocks > max_grid_x) return outside("the number of blocks", blocks, max_grid_x);
  return std::nullopt;
}

void run(const BackwardArguments& a, Device& device) {
  const std::vector<BwdVariant> all = variants(a.problem);
  const BwdVariant& v =
      *std::ranges::find(all, a.plan, [](const BwdVariant& one) { return plan_of(one); });
  launch_list_items<this_executor>(a, device);
  with_cuda_type(a.problem.element_type, [&]<typename T>(std::type_identity<T>) {
    launch_delta<this_executor, T>(a, device);
  });
  const auto launch_tiles = [&](auto kernel, std::int64_t blocks, std::int64_t own,
                                std::int64_t shared_bytes) {
    if (blocks == 0) return;
    launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(2 * own)),
           static_cast<std::size_t>(shared_bytes), device, a);
  };
  launch_tiles(v.keys, key_blocks(a.problem, a.plan), v.key_tile, v.keys_shared_bytes);
  launch_tiles(v.queries, query_blocks(a.problem, a.plan), v.query_tile, v.queries_shared_bytes);
  launch_tiles(v.bias, bias_blocks(a.problem, a.plan), v.query_tile, v.queries_shared_bytes);
  const auto* const lse2 = static_cast<const float*>(a.workspace);
  launch_sink_gradients<this_executor>(a, {lse2, lse2 + a.problem.rows(), a.problem.query_len},
                                       device);
}

BackwardRoundings precision(const Problem& problem, const Plan& plan) {
  const bool is_fp32 = problem.element_type == ElementType::fp32;
  const Accumulation products = is_fp32 ? Accumulation{} : hopper();
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  const std::int64_t row_tiles = group * ceil_div(problem.query_len, plan.query_tile);
  const std::int64_t key_tiles = ceil_div(problem.key_len, plan.key_tile);
  return {.score = products,
          .product = products,
          .sums = products,
          // Without a softcap the scale is part of the exponent's fused product.
          .scale_after_dot = problem.softcap != 0.0F,
          // tanh, the quotient in its argument, which tanh damps by half, and the product.
          .softcap_error = tanh_error + 2 * 0x1p-24,
          .exp = ex2_approx(),
          .lse = LseForm::log2,
          .delta_chain = delta_additions(problem),
          .weight_format = problem.element_type,
          .dscore_format = problem.element_type,
          .dq_chain = std::max<std::int64_t>(1, key_tiles * plan.key_tile),
          .kv_chain = std::max<std::int64_t>(1, row_tiles * plan.query_tile),
          .output = problem.element_type,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.operation = &backward_operation,
     .name = "bwd_simple",
     .summary = "gradients by a loop over rows and a loop over keys: no atomics, seven products",
     .source = "B1, B2 [FA2 Alg. 2]",
     .executor = this_executor,
     .element_types = {ElementType::fp32, ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right, Mask::window_top_left,
               Mask::window_bottom_right},
     .features = {.no_queries = true,
                  .value_dim = true,
                  .softcap = true,
                  .lengths = true,
                  .padding = true,
                  .lse_gradient = true,
                  .sinks = true,
                  .slopes = true,
                  .bias = true,
                  .prefix = true,
                  .documents = true,
                  .lists = true,
                  .dropout = true},
     .ignores_hidden_nan = false,
     .compute_capabilities = {.least = 80},
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .workspace_bytes =
         [](const Problem& problem, const Plan&) {
           return RowTerms::bytes(problem) + ListedItems::bytes(problem);
         },
     .launch = run}};

}  // namespace
}  // namespace attest
