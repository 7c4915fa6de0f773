#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/landlock.hpp"

namespace attest {

/// Permissions of a process in a box, besides computing.
struct BoxRules {
  std::vector<std::string> readable{};  ///< files and folders, besides the system's own
  std::string scratch{};                ///< a folder: its home, and all that it may write to
  bool starts_processes = true;         ///< false: threads only
  std::uint64_t memory_bytes = 0;       ///< of its own, without shared memory; 0: no limit
};

/// Box for a process that nobody trusts: it reads the system's libraries and what the rules name,
/// writes to its scratch folder, has no network, no new privileges and of root's capabilities none
/// but those of files, and cannot trace, look into or signal other processes. Of descriptors it has
/// those that it is handed. What this Linux lacks of Landlock and seccomp is left out; box_here()
/// says so.
class Box {
 public:
  /// Prepares the rules in this process, which stays outside. Throws MachineError where Linux
  /// refuses a rule of files.
  explicit Box(BoxRules rules);
  /// Puts the calling process into the box, for ever: nullptr, or the call that failed with errno.
  /// Safe between fork and exec.
  [[nodiscard]] const char* enter() const noexcept;
  /// All of its environment, `NAME=VALUE`: nothing of this process's but PATH.
  [[nodiscard]] const std::vector<std::string>& environment() const { return environment_; }

 private:
  BoxRules rules_;
  Landlock files_;
  std::vector<std::string> environment_;
};

/// Parts that a box has on this machine, and what it lacks: `landlock, seccomp`, or `seccomp; no
/// landlock: Linux 5.10`.
[[nodiscard]] std::string box_here();

}  // namespace attest
