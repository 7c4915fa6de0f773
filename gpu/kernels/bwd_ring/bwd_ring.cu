// bwd_ring: gradients of attention of several GPUs, each with a part of the tokens [Liu et al.
// 2023, arXiv 2310.01889; Zhu, ring-flash-attention; claims N3]. What ranks do when is in
// ring/ranks.cuh and backward_ranks.cuh; here is the family as a kernel under test: Plans,
// roundings, launches.
//
// `bwd_ring` takes the whole problem, deals it out, and collects the answer, so that all laws can
// be asked; it is timed without either. `bwd_ring_share` is the limit that it is timed beside: the
// same launches on the same GPUs without an exchange.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/backward_roundings.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/bwd_ring/backward_ranks.cuh"
#include "gpu/kernels/ring/ring_kernel.cuh"
#ifdef __CUDACC__
#include "gpu/kernels/ring/processes.cuh"
#endif

namespace attest {
namespace {

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  const KernelInfo& kernel = kernel_of_ring<this_executor>("bwd_wgmma");
  if (auto why = why_no_ring(kernel, problem, plan, backward_ring<this_executor>)) return why;
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  std::vector<std::int64_t> of_queries(ranks), of_keys(ranks);
  for_each_meeting(problem, plan, backward_ring<this_executor>,
                   [&](std::int64_t rank, const RingStep& step, std::size_t, const Problem&,
                       const std::optional<Plan>&) {
                     ++of_queries[static_cast<std::size_t>(rank)];
                     ++of_keys[static_cast<std::size_t>(step.owner)];
                   });
  if (auto why = why_too_many_parts(of_queries)) return why;
  return why_too_many_parts(of_keys);
}

/// Each launch's own roundings, its gradients in their format, and sums of those.
BackwardRoundings precision(const Problem& problem, const Plan& plan) {
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  std::vector<std::int64_t> dq_parts(ranks), kv_parts(ranks);
  BackwardRoundings result;
  std::int64_t dq_chain = 1, kv_chain = 1, kv_tiles = 1;
  for_each_meeting(problem, plan, backward_ring<this_executor>,
                   [&](std::int64_t rank, const RingStep& step, std::size_t, const Problem& part,
                       const std::optional<Plan>& chosen) {
                     result = kernel_of_ring<this_executor>("bwd_wgmma")
                                  .precision(part, chosen.value())
                                  .as<BackwardRoundings>();
                     dq_parts[static_cast<std::size_t>(rank)] += result.dq_parts;
                     ++kv_parts[static_cast<std::size_t>(step.owner)];
                     dq_chain = std::max(dq_chain, result.dq_chain);
                     kv_chain = std::max(kv_chain, result.kv_chain);
                     kv_tiles = std::max(kv_tiles, result.kv_tiles);
                   });
  const auto most = [](const std::vector<std::int64_t>& parts) {
    return std::max<std::int64_t>(1, *std::ranges::max_element(parts));
  };
  result.dq_chain = dq_chain;
  result.dq_parts = most(dq_parts);
  result.dq_part_format = problem.element_type;
  result.kv_chain = kv_chain;
  result.kv_tiles = kv_tiles;
  result.kv_parts = most(kv_parts);
  result.kv_part_format = problem.element_type;
  result.output = problem.element_type;
  return result;
}

using Ranks = BackwardRanks<this_executor>;

KernelInfo kernel() {
  KernelInfo info = ring_info<Ranks, BackwardArguments>(
      "bwd_ring",
      "bwd_wgmma on several GPUs in a ring; copy engines move K, V, dK and dV meanwhile");
  info.operation = &backward_operation;
  // Blocks of bwd_wgmma add to dQ in the order in which they come.
  info.plan_depends_on_order = [](const Plan&) { return true; };
  info.precision = precision;
  info.unsupported = unsupported;
  return info;
}

const KernelRegistration registration(kernel());
const KernelRegistration limit(share_of<Ranks, BackwardArguments>(kernel()));

#ifdef __CUDACC__
// The same by processes, of which the executor has no use: it is one.
using OneOfRanks = BackwardRanks<this_executor, ProcessDevices>;
const RankWorkRegistration work(work_of("bwd_ring"), run_rank<OneOfRanks, BackwardArguments>);
const KernelRegistration processes(in_processes(kernel(), true));
const KernelRegistration limit_of_processes(share_in_processes(kernel()));
#endif

}  // namespace
}  // namespace attest
