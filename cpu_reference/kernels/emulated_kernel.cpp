#include "cpu_reference/kernels/emulated_kernel.hpp"

#include <algorithm>
#include <utility>

#include "core/run/registry.hpp"
#include "cpu_reference/forward/emulation.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

std::vector<Plan> plans(const Problem& /*problem*/) {
  return {{.key_tile = 16},
          {.key_tile = 64},
          {.key_tile = 128},
          {.key_tile = 16, .key_splits = 2},
          {.key_tile = 32, .key_splits = 3}};
}

}  // namespace

PrecisionPlan flash_precision(const Problem& problem, const Plan& plan,
                              const Accumulation& accumulation) {
  PrecisionPlan precision = row_precision(problem);
  precision.score = accumulation;
  precision.value = accumulation;
  precision.scale_after_dot = false;
  precision.exp = exp2_of_scaled_difference();
  precision.weight_format = problem.element_type;
  precision.rescale = Rescale::deferred;
  precision.blocks = tile_count(problem.key_len, plan.key_tile);
  precision.splits = std::max<std::int64_t>(plan.key_splits, 1);
  if (precision.splits > 1) precision.normaliser_chain += precision.splits;
  return precision;
}

KernelInfo emulated_kernel(std::string name, std::string summary, const Accumulation& accumulation,
                           std::vector<ElementType> element_types) {
  KernelInfo kernel;
  kernel.name = std::move(name);
  kernel.summary = std::move(summary);
  kernel.source = "claims O5, O8; FA2 Alg. 1";
  kernel.executor = Executor::cpu;
  kernel.element_types = std::move(element_types);
  kernel.masks.assign(prefix_masks().begin(), prefix_masks().end());
  kernel.precision = [accumulation](const Problem& problem, const Plan& plan) {
    return flash_precision(problem, plan, accumulation);
  };
  kernel.plans = plans;
  kernel.launch =
      cpu_launch([accumulation](const Problem& problem, const Plan& plan, const Inputs& inputs) {
        return emulate(problem, plan, flash_precision(problem, plan, accumulation), inputs);
      });
  return kernel;
}

namespace {

// FlashAttention-2 style kernels, replayed: on CUDA cores and on the tensor cores of sm_80 (A100)
// and sm_90 (H100, H200). How a tensor core sums is in core/attention/tensor_core_product.hpp.

const KernelRegistration fma(
    emulated_kernel("emulated_fma", "emulation: fp32 FMA products, P in the input's format",
                    {.kind = Accumulation::Kind::fp32_fma},
                    {ElementType::fp32, ElementType::fp16, ElementType::bf16}));
const KernelRegistration sm80(emulated_kernel(
    "emulated_mma_sm80", "emulation: tensor cores of sm_80 (8 terms a step, 24 fraction bits)",
    ampere(), {ElementType::fp16, ElementType::bf16}));
const KernelRegistration sm90(emulated_kernel(
    "emulated_mma_sm90", "emulation: tensor cores of sm_90 (16 terms a step, 25 fraction bits)",
    hopper(), {ElementType::fp16, ElementType::bf16}));

}  // namespace
}  // namespace attest
