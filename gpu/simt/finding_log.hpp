#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/run/device.hpp"
#include "gpu/simt/shadow.hpp"

namespace attest::simt {

/// Findings of a device's launches, a few per kind and line. Safe to add to from several OS
/// threads.
class FindingLog {
 public:
  static constexpr std::size_t limit = 32;

  /// True the first time for this kind and place, until the log is full or taken: only then is a
  /// message worth making.
  [[nodiscard]] bool is_new(const char* kind, ProgramPoint point);
  void add(const char* kind, std::string message);
  [[nodiscard]] std::vector<Finding> take();

 private:
  struct Seen {
    std::string kind;
    ProgramPoint point;
  };
  std::mutex mutex_;
  std::vector<Seen> seen_;
  std::vector<Finding> findings_;
};

}  // namespace attest::simt
