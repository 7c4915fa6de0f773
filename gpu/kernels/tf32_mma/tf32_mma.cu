// FlashAttention-2 with fp32 inputs on the TF32 tensor cores [FA2 Alg. 1; three products: Ootomo
// and Yokota, IJHPCA 36(4), 2022]: the tile of fa2_mma with products of its own (products.cuh).
//
// Idea
//   A factor x becomes hi, x rounded to TF32, and lo = x - hi. tf32_x3 multiplies lo hi, hi lo and
//   hi hi, which is nearly fp32 at a third of the tensor cores' speed; tf32 multiplies hi hi alone,
//   an error of 2^-11 a factor. A tensor core cuts every sum, always towards zero, so P V of a tile
//   is formed apart and added to O in fp32: over thousands of keys the cuts would be the largest
//   error. Factors are split where a fragment of them is loaded, not in memory.
// Resident, barriers, masking
//   those of gpu/kernels/fa2_mma/tile.cuh, with fp32 tiles; Q stays in shared memory.
// Limits
//   fp32; head_dim and value_dim up to 256; dense problems. Arithmetic: hopper_tf32().

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/fa2_mma/variant.cuh"
#include "gpu/kernels/tf32_mma/products.cuh"

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 256;
constexpr std::int64_t largest_length = std::int64_t{1} << 30;  // rows are counted in 32 bits

struct Tf32Variant {
  Fa2Variant kernels;
  Products::Value products;
};

template <int D, int Br, int Bc, int warps, int stages, Products::Value products>
constexpr Tf32Variant variant() {
  return {fa2_variant<this_executor, Tf32Shape<D, Br, Bc, warps, stages, products>>(), products};
}

/// Variants, of 32 rows a warp where registers hold O: fragments of K and V are split once for all.
constexpr Tf32Variant variants[] = {
    variant<64, 128, 32, 4, 2, Products::tf32_x3>(),  variant<64, 128, 64, 4, 2, Products::tf32>(),
    variant<128, 128, 16, 4, 2, Products::tf32_x3>(), variant<128, 128, 64, 8, 1, Products::tf32>(),
    variant<256, 64, 32, 4, 2, Products::tf32_x3>(),  variant<256, 64, 32, 4, 2, Products::tf32>(),
};

Plan plan_of(const Tf32Variant& v) {
  return {.query_tile = v.kernels.query_tile,
          .key_tile = v.kernels.key_tile,
          .warps = v.kernels.warps,
          .stages = v.kernels.stages,
          .products = v.products};
}

/// The smallest compiled head dim that holds the problem's.
std::int64_t compiled_dim(const Problem& problem) {
  const std::int64_t needed = std::max(problem.head_dim, problem.output_dim());
  std::int64_t dim = largest_head_dim;
  for (const Tf32Variant& v : variants) {
    if (v.kernels.dim >= needed) dim = std::min(dim, v.kernels.dim);
  }
  return dim;
}

const Tf32Variant* find_variant(const Problem& problem, const Plan& plan) {
  for (const Tf32Variant& v : variants) {
    if (v.kernels.dim != compiled_dim(problem)) continue;
    Plan sizes = plan_of(v);
    sizes.grid_order = plan.grid_order;
    sizes.group = plan.group;
    if (sizes == plan) return &v;
  }
  return nullptr;
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
  if (find_variant(problem, plan) == nullptr) {
    std::string all;
    for (const Tf32Variant& v : variants) {
      if (v.kernels.dim != compiled_dim(problem)) continue;
      if (!all.empty()) all += "; ";
      all += to_string(plan_of(v));
    }
    return "the plan is " + to_string(plan) +
           "; compiled for this head_dim, with any grid_order: " + all;
  }
  const BlockGrid grid = block_grid(problem, plan);
  if (grid.x > max_grid_x) return outside("grid.x", grid.x, max_grid_x);
  if (grid.y > max_grid_y) return outside("grid.y", grid.y, max_grid_y);
  return why_order_does_not_fit(plan);
}

std::vector<Plan> plans(const Problem& problem) {
  std::vector<Plan> tiles;
  for (const Tf32Variant& v : variants) {
    if (!unsupported(problem, plan_of(v))) tiles.push_back(plan_of(v));
  }
  if (tiles.empty()) return tiles;
  std::vector<Plan> all;
  if (problem.mask != Mask::none) {
    // As in fa2_mma: long tiles first, the K and V of few heads at a time.
    all.push_back(tiles.front());
    all.back().grid_order = GridOrder::longest_first;
    all.back().group = 4;
  }
  for (const Plan& plan : with_grid_orders(tiles, problem, unsupported)) all.push_back(plan);
  return all;
}

void run(const ForwardArguments& a, Device& device) {
  const Fa2Variant& v = find_variant(a.problem, a.plan)->kernels;
  const BlockGrid grid = block_grid(a.problem, a.plan);
  launch_output_tiles(v.dense,
                      {.threads = 32 * v.warps,
                       .shared_floats = v.shared_bytes / 4,
                       .grid_x = grid.x,
                       .grid_y = grid.y},
                      a, device);
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  const bool splits = plan.products == Products::tf32_x3;
  const Parts parts = splits ? Parts{.format = Parts::Format::tf32, .count = 2, .cut = 1}
                             : Parts{.format = Parts::Format::tf32};
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile));
  return {.score = hopper_tf32(),
          .value = hopper_tf32(),
          .score_parts = parts,
          .value_parts = parts,
          .promoted_keys = splits ? plan.key_tile : 0,
          // A positive scale is part of the exponent's fused product; others multiply before.
          .scale_after_dot = !(problem.scale > 0.0F),
          .exp = ex2_approx(),
          .reference_lag = static_cast<double>(reference_lag),
          .rescale = Rescale::deferred,
          .blocks = blocks,
          // A lane adds its two keys of every eight of a tile, then the tiles; four lanes meet.
          .normaliser_chain = plan.key_tile / 4 + blocks + 2,
          .division_error = 0x1p-23,  // the reciprocal and the product
          .log_error = ln_error,
          .lse = LseForm::log2,
          .flushes_subnormals = true};
}

const KernelRegistration registration{
    {.name = "tf32_mma",
     .summary = "FA2 with fp32 inputs on TF32 tensor cores: one product, or three of split factors",
     .source = "FA2 Alg. 1; Ootomo and Yokota 2022",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp32},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .features = {.value_dim = true},
     .ignores_hidden_nan = false,
     .compute_capabilities = {.least = 80},
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .launch = run}};

}  // namespace
}  // namespace attest
