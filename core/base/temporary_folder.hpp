#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/base/error.hpp"

namespace attest {

/// A new, empty folder that no other process has, deleted with all that is in it at the end. CTest
/// runs the tests of a suite as processes at the same time: a folder with a fixed name is theirs
/// together. Throws MachineError if it cannot be made.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "attest_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw MachineError(name + ": cannot be made: " + std::strerror(errno));
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  operator const std::filesystem::path&() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// One in which this process and those that it starts from now on make their own: workers end
/// without tidying up.
class SharedTemporaryFolder {
 public:
  SharedTemporaryFolder() { (void)::setenv("TMPDIR", folder_.path().c_str(), 1); }

 private:
  TemporaryFolder folder_;
};

}  // namespace attest
