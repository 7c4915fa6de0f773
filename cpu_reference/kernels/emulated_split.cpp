// Kernels that read fp32 and multiply on the tensor cores of sm_90, replayed: factors rounded to
// TF32, or split into parts of TF32, fp16 or bf16 [Ootomo and Yokota, IJHPCA 36(4), 2022]. P V of
// a key block is summed apart.

#include <array>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/emulation.hpp"
#include "cpu_reference/kernels/emulated_kernel.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

/// Weights are at most 1; elements below 2^14 leave fp16 room for their rounding.
constexpr double largest_part = 0x1p13;

Parts parts_of(std::int64_t products) {
  switch (products) {
    case Products::tf32:
      return {.format = Parts::Format::tf32};
    case Products::tf32_x3:
      return {.format = Parts::Format::tf32, .count = 2, .cut = 1};
    case Products::fp16_x3:
      return {.format = Parts::Format::fp16, .count = 2, .scaled_to = largest_part};
    case Products::bf16_x3:
      return {.format = Parts::Format::bf16, .count = 2};
    default:
      return {.format = Parts::Format::bf16, .count = 3};
  }
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  const Parts parts = parts_of(plan.products);
  PrecisionPlan result = flash_precision(
      problem, plan, parts.format == Parts::Format::tf32 ? hopper_tf32() : hopper());
  result.score_parts = result.value_parts = parts;
  if (parts.scaled_to > 0) result.weight_scale = largest_part;
  result.promoted_keys = plan.key_tile;
  return result;
}

std::vector<Plan> plans(const Problem& /*problem*/) {
  std::vector<Plan> all;
  for (const std::int64_t products : {Products::tf32_x3, Products::fp16_x3, Products::bf16_x6,
                                      Products::tf32, Products::bf16_x3}) {
    all.push_back({.key_tile = 32, .products = products});
  }
  all.push_back({.key_tile = 64, .key_splits = 3, .products = Products::fp16_x3});
  return all;
}

KernelInfo kernel() {
  KernelInfo info = emulated_kernel("emulated_split_sm90",
                                    "emulation: fp32 factors in parts on tensor cores of sm_90",
                                    hopper(), {ElementType::fp32});
  info.source = "Ootomo and Yokota 2022";
  info.ignores_hidden_nan = false;  // heads are scaled by their largest element
  info.precision = precision;
  info.plans = plans;
  info.launch = cpu_launch([](const Problem& problem, const Plan& plan, const Inputs& inputs) {
    return emulate(problem, plan, precision(problem, plan), inputs);
  });
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
