// FlashAttention-2 in Triton (triton_flash.py), compiled and run by the Python worker [KT of S3; T1
// of S0, T2 of S1, T3 of S2].
//
// What its PrecisionPlan rests on: the source, and the worst of what Triton may make of it. Sums on
// tensor cores, P V of all tiles in one chain; a product and a subtraction may become one fused
// step, which is a scale inside the exponent; exponential and logarithm are the hardware's, the
// division is div.full, 2 ulp, and instructions may flush subnormals.
#include <fmt/format.h>

#include <algorithm>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/peers/fused_precision.hpp"
#include "gpu/peers/torch_peer.hpp"

namespace attest {
namespace {

constexpr std::int64_t largest_grid_y = 65535;
constexpr std::int64_t largest_length = std::int64_t{1} << 30;  // rows are counted in 32 bits

Plan tiles(std::int64_t rows, std::int64_t keys, std::int64_t warps, std::int64_t stages) {
  return {.query_tile = rows, .key_tile = keys, .warps = warps, .stages = stages};
}

/// The seeds' tiles: T1's best, 128 x 128 with 8 warps and 2 stages; T2's and T3's 64 x 64; and one
/// between. The first is the default.
std::vector<Plan> plans(const Problem&) {
  return {tiles(128, 64, 8, 3), tiles(128, 128, 8, 2), tiles(64, 64, 4, 2)};
}

std::optional<std::string> unsupported(const Problem& p, const Plan& plan) {
  const std::vector<Plan> allowed = plans(p);
  if (std::ranges::find(allowed, plan) == allowed.end()) {
    return fmt::format("the plan is {}; allowed: {}, {} and {}", to_string(plan),
                       to_string(allowed[0]), to_string(allowed[1]), to_string(allowed[2]));
  }
  if (p.batch * p.query_heads > largest_grid_y) {
    return fmt::format("{} x {} heads; allowed: up to {} in all", p.batch, p.query_heads,
                       largest_grid_y);
  }
  if (std::max(p.query_len, p.key_len) > largest_length) {
    return fmt::format("{} queries and {} keys; allowed: up to {}", p.query_len, p.key_len,
                       largest_length);
  }
  return std::nullopt;
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  const std::int64_t blocks =
      std::max<std::int64_t>(1, (problem.key_len + plan.key_tile - 1) / plan.key_tile);
  PrecisionPlan precision = fused_precision(problem);
  precision.blocks = blocks;
  precision.splits = 1;
  precision.merge = Merge::sums;
  precision.normaliser_chain = plan.key_tile + blocks;
  precision.flushes_subnormals = true;
  return precision;
}

constexpr const char* name = "triton_flash";

const KernelRegistration registration{
    {.name = name,
     .summary = "FlashAttention-2 in Triton, in a Python worker",
     .source = "KT, T1, T2, T3; FA2 Alg. 1",
     .executor = Executor::gpu,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .head_dims = {64, 128},
     .ignores_hidden_nan = false,  // a weight of 0 times a hidden value
     .layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16},
     .unavailable = why_no_triton,
     .precision = precision,
     .plans = plans,
     .unsupported = unsupported,
     .launch = [](const ForwardArguments& a,
                  Device& device) { launch_torch_peer(name, call_of(a), device); },
     .timed_launch =
         [](const ForwardArguments& a, Device& device, LaunchesInRow launches) {
           return time_torch_peer(name, call_of(a), device, launches);
         }}};

}  // namespace
}  // namespace attest
