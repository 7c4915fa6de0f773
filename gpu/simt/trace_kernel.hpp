#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "core/run/launch_trace.hpp"
#include "gpu/simt/launch_tracer.hpp"

namespace attest {

/// Traces that several problems have in common: those of lengths that differ by whole steps, or of
/// other numbers of heads, rest on the same short runs. Threads may share it; each trace is made
/// once.
class TraceMemo {
 public:
  /// Traces that `make` gave the first time for this key; an exception as well.
  [[nodiscard]] std::vector<KernelTrace> get(const std::string& key,
                                             const std::function<std::vector<KernelTrace>()>& make);

  /// Traces that were made.
  [[nodiscard]] std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return made_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_future<std::vector<KernelTrace>>> made_;
};

/// The launches that `kernel`, built for the SIMT executor, makes for a problem with contiguous
/// tensors or pages. Nothing runs and no tensor is made, so the problem may be of any size. Throws
/// InvalidInput with the kernel's sentence when it cannot run it.
[[nodiscard]] std::vector<LaunchConfiguration> observe_launches(const KernelInfo& kernel,
                                                                const Problem& problem,
                                                                const Plan& plan,
                                                                const LaunchSetting& setting);

/// Runs it on normal random inputs, contiguous or in pages, and traces the blocks that `sample`
/// names (empty: all). Launches of the same kernel are added up. What is wrong with the kernel is
/// not looked for. Throws as above.
[[nodiscard]] std::vector<KernelTrace> trace_kernel(const KernelInfo& kernel,
                                                    const Problem& problem, const Plan& plan,
                                                    const simt::BlockSample& sample = {},
                                                    const Paging& paging = {});

/// Counts of the whole problem from runs of one head at a few short lengths, in seconds at any
/// length. Assumes that heads count alike and that every count is a polynomial of degree 2 in the
/// number of whole tiles, the rest of the length held fixed: true for kernels whose blocks or loop
/// steps do the same work for each tile (full mask) or for each tile up to the diagonal (causal). A
/// further run checks it; see ProblemCounters::is_exact. Throws as above, and InvalidInput when
/// both lengths are long and differ, or when some instruction runs at one of the lengths only.
/// `memo` may be null; `setting` as above.
[[nodiscard]] ProblemCounters count_kernel(const KernelInfo& kernel, const Problem& problem,
                                           const Plan& plan, TraceMemo* memo = nullptr,
                                           const LaunchSetting& setting = {});

}  // namespace attest
