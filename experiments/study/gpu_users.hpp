#pragma once

#include <filesystem>
#include <string>

namespace attest {

/// This process among those that time something on a GPU: two of them disturb each other's times.
/// They see each other where they share a folder, such as /run/lock, and as long as they live.
class GpuUsers {
 public:
  /// `gpu`: a line that tells it from the machine's others. An empty folder, or one that cannot be
  /// written: nobody is seen.
  GpuUsers(const std::string& gpu, const std::filesystem::path& folder);
  GpuUsers(const GpuUsers&) = delete;
  GpuUsers& operator=(const GpuUsers&) = delete;
  ~GpuUsers();

  /// True if another process times something on this GPU now. False where nobody is seen.
  [[nodiscard]] bool are_several() const;

 private:
  int file_ = -1;
};

}  // namespace attest
