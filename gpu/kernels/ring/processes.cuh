#pragma once

// A ring whose ranks are processes, one a GPU, as frameworks run them: each starts the launches and
// copies of its own rank alone, and memory operations of its streams wait for the others. Which
// rank does what when is ranks.cuh's, unchanged; only on GPUs.
#include <memory>
#include <string>
#include <utility>

#include "gpu/kernels/ring/ring_kernel.cuh"

namespace attest {

/// The name under which processes find the work of their rank.
inline std::string work_of(const std::string& ring) {
  return ring + "_processes";
}

/// A launch in the process of a rank: its answer.
template <typename Ranks, typename NamedArguments>
std::string run_rank(const std::string& task, RankChannel& channel) {
  auto visit = std::make_unique<RankVisit>(task, channel);
  channel.at("it took its rows");
  auto ranks = std::make_unique<Ranks>(NamedArguments(visit->arguments()), visit->place());
  double ms = 0;
  try {
    channel.at("it ran a ring");
    ranks->run(true);
    ranks->wait();
    if (visit->times().timed > 0) {
      channel.at("it was timed");
      ms = ranks->time_ms(visit->times().timed, visit->times().exchanges);
    }
    channel.at("it gave its rows");
    ranks->give_outputs();
    channel.at("it waited for the others to be done with its keys");
    ranks->let_go();
  } catch (...) {
    // Another one may read its memory, and its streams may wait for what will never come, as
    // whoever frees memory would then: the process ends with all of it.
    (void)ranks.release();
    (void)visit.release();
    throw;
  }
  return RankVisit::answer(ms);
}

/// A ring, by processes. `exchanges`: false, of what is timed, leaves out what ranks send each
/// other.
inline KernelInfo in_processes(KernelInfo ring, bool exchanges) {
  const std::string work = work_of(ring.name);
  ring.launch = [work](const Arguments& all, Device& device) {
    (void)ask_ranks(work, all, device, {});
  };
  ring.name = work;
  ring.summary += "; a process a GPU";
  ring.timed_launch = [name = ring.name, work, exchanges](const Arguments& all, Device& device,
                                                          LaunchesInRow launches) {
    require_gpu_each<this_executor>(name, all.plan.ranks);
    return ask_ranks(work, all, device, {.timed = launches.count, .exchanges = exchanges});
  };
  return ring;
}

/// Limit that it is timed beside: the same processes, launches and GPUs without an exchange.
inline KernelInfo share_in_processes(KernelInfo ring) {
  return as_share(in_processes(std::move(ring), false));
}

}  // namespace attest
