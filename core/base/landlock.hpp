#pragma once

#include <string>
#include <vector>

#include "core/base/subprocess.hpp"

namespace attest {

/// The parts of the tree of files that a process keeps: files, and folders with all below them.
/// What is not there is left out.
struct FileRules {
  std::vector<std::string> readable{};  ///< may be read and executed
  std::vector<std::string> writable{};  ///< besides, files there may be written, made and deleted
};

/// Version of Landlock's interface that this Linux has; 0: none [landlock(7)].
[[nodiscard]] int landlock_version();

/// Rules that a process can put upon itself and what it starts, for ever: no other file is opened,
/// no port bound or connected to; from version 6 on no process outside gets a signal. Neither can
/// it trace or look into one. Where there is no Landlock it does nothing.
class Landlock {
 public:
  /// Opens what the rules name. Throws MachineError where Linux refuses a rule.
  explicit Landlock(const FileRules& rules);
  /// Puts the rules upon the calling thread; false with errno. Needs no_new_privs. Safe between
  /// fork and exec. True without any effect where there is no Landlock.
  [[nodiscard]] bool enter() const noexcept;

 private:
  OwnedFd rules_;  ///< -1: no Landlock
};

}  // namespace attest
