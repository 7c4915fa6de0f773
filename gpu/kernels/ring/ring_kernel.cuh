#pragma once

// A ring as a kernel under test: what all of them say of themselves, and how they are run and
// timed. `Ranks` are made of a launch's arguments and its device; they run(exchanges), say their
// time_ms(count, exchanges) and give_outputs().
#include <string>
#include <utility>

#include "core/run/kernel.hpp"
#include "gpu/kernels/ring/ranks.cuh"
#include "gpu/primitives/tensor_map.cuh"

namespace attest {

/// Deals the problem out, goes round once, and collects the answer.
template <typename Ranks, typename NamedArguments>
void run_ring(const NamedArguments& a, Device& device) {
  Ranks ranks(a, device);
  ranks.run(true);
  ranks.give_outputs();
}

/// Throws MachineError where ranks would share GPUs: times would say nothing.
template <Executor home>
void require_gpu_each(const std::string& name, std::int64_t ranks) {
  if (ranks <= RankDevices::gpus()) return;
  throw MachineError(name + ": " + std::to_string(ranks) +
                     " ranks are timed on as many GPUs; this machine has " +
                     std::to_string(RankDevices::gpus()));
}

/// Lets `info` be timed by so many rings in a row, without dealing out and collecting. `exchanges`:
/// false leaves out what ranks send each other.
template <typename Ranks, typename NamedArguments>
void time_rings(KernelInfo& info, bool exchanges) {
  info.timed_launch = [name = info.name, exchanges](const Arguments& all, Device& device,
                                                    LaunchesInRow launches) {
    const NamedArguments a(all);
    require_gpu_each<this_executor>(name, a.plan.ranks);
    Ranks ranks(a, device);
    ranks.run(true);  // all buffers hold what they will
    const double ms = ranks.time_ms(launches.count, exchanges);
    ranks.give_outputs();
    return ms;
  };
}

/// Description of a ring, but for its operation and its roundings.
template <typename Ranks, typename NamedArguments>
KernelInfo ring_info(std::string name, std::string summary) {
  KernelInfo info;
  info.name = std::move(name);
  info.summary = std::move(summary);
  info.source = "claims N3";
  info.executor = this_executor;
  info.element_types = {ElementType::fp16, ElementType::bf16};
  info.masks.assign(prefix_masks().begin(), prefix_masks().end());
  info.features = {.no_queries = true, .value_dim = true, .softcap = true};
  info.ignores_hidden_nan = false;
  info.unavailable = [] { return why_not_hopper(); };
  info.compute_capabilities = hopper_alone;
  info.plans = ring_plans;
  info.launch = run_ring<Ranks, NamedArguments>;
  time_rings<Ranks, NamedArguments>(info, true);
  return info;
}

/// A ring that is timed without an exchange, as the limit that it is.
inline KernelInfo as_share(KernelInfo ring) {
  ring.name += "_share";
  ring.summary = "no ring: its launches without an exchange, which is what it could be";
  ring.role = KernelRole::limit;
  return ring;
}

/// Limit that a ring is timed beside: the same launches on the same GPUs without an exchange.
template <typename Ranks, typename NamedArguments>
KernelInfo share_of(KernelInfo ring) {
  KernelInfo share = as_share(std::move(ring));
  time_rings<Ranks, NamedArguments>(share, false);
  return share;
}

}  // namespace attest
