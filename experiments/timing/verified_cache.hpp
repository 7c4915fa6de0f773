#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Small cases that passed all laws, on disk, so that a study does not judge them again. A case
/// counts only for the build and the device that it passed on; only passes are kept. Several
/// processes may share the file: what is damaged in it is as if it were not there.
class VerifiedCache {
 public:
  /// Reads what `file` holds of this build and device; no file: nothing. An empty path keeps
  /// nothing on disk.
  VerifiedCache(std::filesystem::path file, std::string build, std::string device);

  /// True if the case passed. Safe to call from several threads.
  [[nodiscard]] bool holds(const KernelInfo& kernel, const Case& c) const;
  /// Adds it and appends a line. Safe to call from several threads. Throws MachineError when the
  /// file cannot be written.
  void add(const KernelInfo& kernel, const Case& c);

 private:
  [[nodiscard]] static std::string key(const KernelInfo& kernel, const Case& c);
  void append(const std::string& line) const;

  std::filesystem::path file_;
  std::string build_, device_;
  mutable std::mutex mutex_;
  std::set<std::string> passed_;
};

}  // namespace attest
