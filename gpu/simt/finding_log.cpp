#include "gpu/simt/finding_log.hpp"

#include <algorithm>
#include <utility>

namespace attest::simt {

bool FindingLog::is_new(const char* kind, ProgramPoint point) {
  const std::lock_guard lock(mutex_);
  if (seen_.size() >= limit) return false;
  const bool known = std::any_of(seen_.begin(), seen_.end(), [&](const Seen& seen) {
    return seen.point == point && seen.kind == kind;
  });
  if (!known) seen_.push_back({kind, point});
  return !known;
}

void FindingLog::add(const char* kind, std::string message) {
  const std::lock_guard lock(mutex_);
  findings_.push_back({kind, std::move(message)});
}

std::vector<Finding> FindingLog::take() {
  const std::lock_guard lock(mutex_);
  seen_.clear();
  return std::exchange(findings_, {});
}

}  // namespace attest::simt
