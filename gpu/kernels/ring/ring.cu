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
#include "gpu/kernels/ring/ranks.cuh"
#include "gpu/primitives/tensor_map.cuh"

namespace attest {
namespace {

/// Calls visit(step, launch's problem, its Plan if there is one) for all launches of all ranks.
template <typename Visit>
void for_each_launch(const Problem& problem, const Plan& plan, const Visit& visit) {
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    const std::vector<RingStep> steps = ring_steps(problem, plan, rank);
    for (std::size_t step = 0; step < steps.size(); ++step) {
      for (const RingLaunch& launch : steps[step].launches) {
        const Problem part = problem_of(problem, launch);
        visit(rank, step, part, ring_plan<this_executor>(part));
      }
    }
  }
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  if (plan.ranks < 1 || plan.ranks > most_ring_parts) {
    return "ranks are " + std::to_string(plan.ranks) + "; allowed: 1 to " +
           std::to_string(most_ring_parts);
  }
  if (plan.distribution < Distribution::contiguous || plan.distribution > Distribution::stripe) {
    return "the plan names no distribution; allowed: contiguous, zigzag and stripe";
  }
  std::optional<std::string> reason;
  std::int64_t parts = 0, parts_of_rank = 0;
  std::int64_t last_rank = -1;
  for_each_launch(
      problem, plan,
      [&](std::int64_t rank, std::size_t, const Problem& part, const std::optional<Plan>& chosen) {
        parts_of_rank = rank == last_rank ? parts_of_rank + 1 : 1;
        last_rank = rank;
        parts = std::max(parts, parts_of_rank);
        if (!chosen) {
          reason = "fa3_wgmma has no plan for a launch of it, " + to_string(part);
        } else if (const auto why = why_unsupported(ring_kernel<this_executor>(), part, *chosen)) {
          reason = "fa3_wgmma cannot run a launch of it: " + *why;
        }
      });
  if (reason) return reason;
  if (parts <= most_ring_parts) return std::nullopt;
  return "a rank's answer has " + std::to_string(parts) +
         " parts; allowed: " + std::to_string(most_ring_parts);
}

/// Each launch's own roundings, then O_p in its format, and a merge.
PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(plan.ranks));
  PrecisionPlan result;
  std::int64_t chain = 1;
  for_each_launch(
      problem, plan,
      [&](std::int64_t, std::size_t step, const Problem& part, const std::optional<Plan>& chosen) {
        result = ring_kernel<this_executor>().precision(part, chosen.value()).as<PrecisionPlan>();
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

/// Two ranks first; under causal masks in zigzag, where all have as much to do.
std::vector<Plan> plans(const Problem& problem) {
  std::vector<std::int64_t> order{Distribution::contiguous, Distribution::zigzag,
                                  Distribution::stripe};
  if (problem.mask != Mask::none) std::swap(order[0], order[1]);
  std::vector<Plan> list;
  for (const std::int64_t ranks : {2, 3, 4, 8}) {
    for (const std::int64_t distribution : order) {
      list.push_back({.ranks = ranks, .distribution = distribution});
    }
  }
  list.push_back({.ranks = 1, .distribution = Distribution::contiguous});
  return list;
}

void run(const ForwardArguments& a, Device& device) {
  RingRanks<this_executor> ranks(a, device);
  ranks.run(true);
  ranks.give_outputs();
}

double time_ring(const ForwardArguments& a, Device& device, int count, bool exchanges) {
  if (a.plan.ranks > RankDevices::gpus()) {
    throw MachineError("ring: " + std::to_string(a.plan.ranks) +
                       " ranks are timed on as many GPUs; this machine has " +
                       std::to_string(RankDevices::gpus()));
  }
  RingRanks<this_executor> ranks(a, device);
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
  info.plans = plans;
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
