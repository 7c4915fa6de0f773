#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/run/launch_trace.hpp"

namespace attest {

/// Traces that several problems have in common: those of lengths that differ by whole steps, or of
/// other numbers of heads, rest on the same short runs. Threads may share it; each trace is made
/// once.
class TraceMemo {
 public:
  /// What `make` gave the first time for this key; an exception as well.
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

}  // namespace attest
