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
#include "core/run/registry.hpp"
#include "gpu/kernels/ring/forward_ranks.cuh"
#include "gpu/kernels/ring/ring_kernel.cuh"
#ifdef __CUDACC__
#include "gpu/kernels/ring/processes.cuh"
#endif

namespace attest {
namespace {

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const KernelInfo& kernel = kernel_of_ring<this_executor>("fa3_wgmma");
  if (auto why = why_no_ring(kernel, problem, plan, forward_ring<this_executor>)) return why;
  std::vector<std::int64_t> parts(static_cast<std::size_t>(plan.ranks));
  for_each_meeting(problem, plan, forward_ring<this_executor>,
                   [&](std::int64_t rank, const RingStep&, std::size_t, const Problem&,
                       const std::optional<Plan>&) { ++parts[static_cast<std::size_t>(rank)]; });
  return why_too_many_parts(parts);
}

/// Each launch's own roundings, then O_p in its format, and a merge.
PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(plan.ranks));
  PrecisionPlan result;
  std::int64_t chain = 1;
  for_each_meeting(problem, plan, forward_ring<this_executor>,
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

using Ranks = ForwardRanks<this_executor>;

KernelInfo kernel() {
  KernelInfo info = ring_info<Ranks, ForwardArguments>(
      "ring", "fa3_wgmma on several GPUs in a ring; copy engines move K and V meanwhile");
  info.precision = precision;
  info.unsupported = unsupported;
  return info;
}

const KernelRegistration registration(kernel());
const KernelRegistration limit(share_of<Ranks, ForwardArguments>(kernel()));

#ifdef __CUDACC__
// The same by processes, of which the executor has no use: it is one.
using OneOfRanks = ForwardRanks<this_executor, ProcessDevices>;
const RankWorkRegistration work(work_of("ring"), run_rank<OneOfRanks, ForwardArguments>);
const KernelRegistration processes(in_processes(kernel(), true));
const KernelRegistration limit_of_processes(share_in_processes(kernel()));
#endif

}  // namespace
}  // namespace attest
