// ring: attention of several GPUs, each with a part of the tokens [Liu et al. 2023, arXiv
// 2310.01889; Zhu, ring-flash-attention; claims N3]. What ranks do when is in ranks.cuh; here is
// the family as a kernel under test: Plans, roundings, launches.
//
// `ring` takes the whole problem, deals it out, and collects the answer, so that all laws can be
// asked; it is timed without either. More ranks than GPUs share those there are, which is enough
// for laws; times would say nothing. `ring_share` is the limit that it is timed beside: the same
// launches on the same GPUs without an exchange.
#include <algorithm>
#include <optional>
#include <string>

#include "core/operations/forward.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/ring/forward_ranks.cuh"
#include "gpu/primitives/tensor_map.cuh"

namespace attest {
namespace {

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const KernelInfo& kernel = kernel_of_ring<this_executor>("fa3_wgmma");
  if (auto why = why_no_ring(kernel, problem, plan, forward_ring_plan<this_executor>)) return why;
  std::vector<std::int64_t> parts(static_cast<std::size_t>(plan.ranks));
  for_each_meeting(problem, plan, forward_ring_plan<this_executor>,
                   [&](std::int64_t rank, const RingStep&, std::size_t, const Problem&,
                       const std::optional<Plan>&) { ++parts[static_cast<std::size_t>(rank)]; });
  return why_too_many_parts(parts);
}

/// Each launch's own roundings, then O_p in its format, and a merge.
PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(plan.ranks));
  PrecisionPlan result;
  std::int64_t chain = 1;
  for_each_meeting(problem, plan, forward_ring_plan<this_executor>,
                   [&](std::int64_t, const RingStep&, std::size_t step, const Problem& part,
                       const std::optional<Plan>& chosen) {
                     result = kernel_of_ring<this_executor>("fa3_wgmma")
                                  .precision(part, chosen.value())
                                  .as<PrecisionPlan>();
                     blocks[step] = std::max(blocks[step], result.blocks);
                     chain = std::max(chain, result.normaliser_chain);
                   });
  result.blocks = 0;
  for (const std::int64_t of_step : blocks) result.blocks += of_step;
  result.blocks = std::max<std::int64_t>(result.blocks, 1);
  result.splits = plan.ranks;
  result.normaliser_chain = chain + plan.ranks;
  result.merge = Merge::lse_pairs;
  result.partial_format = problem.element_type;
  return result;
}

void run(const ForwardArguments& a, Device& device) {
  ForwardRanks<this_executor> ranks(a, device);
  ranks.run(true);
  ranks.give_outputs();
}

double time_ring(const ForwardArguments& a, Device& device, int count, bool exchanges) {
  require_gpus<this_executor>("ring", a.plan.ranks);
  ForwardRanks<this_executor> ranks(a, device);
  ranks.run(true);  // all buffers hold what they will
  const double ms = ranks.time_ms(count, exchanges);
  ranks.give_outputs();
  return ms;
}

KernelInfo kernel() {
  KernelInfo info;
  info.name = "ring";
  info.summary = "fa3_wgmma on several GPUs in a ring; copy engines move K and V meanwhile";
  info.source = "claims N3";
  info.executor = this_executor;
  info.element_types = {ElementType::fp16, ElementType::bf16};
  info.masks.assign(prefix_masks().begin(), prefix_masks().end());
  info.features = {.no_queries = true, .value_dim = true, .softcap = true};
  info.ignores_hidden_nan = false;
  info.unavailable = [] { return why_not_hopper(); };
  info.compute_capabilities = hopper_alone;
  info.precision = precision;
  info.plans = ring_plans;
  info.unsupported = unsupported;
  info.launch = run;
  info.timed_launch = [](const Arguments& a, Device& device, LaunchesInRow launches) {
    return time_ring(a, device, launches.count, true);
  };
  return info;
}

[[maybe_unused]] KernelInfo share() {  // planted bugs have none
  KernelInfo info = kernel();
  info.name = "ring_share";
  info.summary = "no ring: its launches without an exchange, which is what it could be";
  info.role = KernelRole::limit;
  info.timed_launch = [](const Arguments& a, Device& device, LaunchesInRow launches) {
    return time_ring(a, device, launches.count, false);
  };
  return info;
}

const KernelRegistration registration(kernel());
const KernelRegistration limit(share());

}  // namespace
}  // namespace attest
