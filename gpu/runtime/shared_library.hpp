#pragma once

#include <string>
#include <vector>

namespace attest {

/// A library of others, opened at run time, so that the program starts where it is missing. Never
/// closed.
class SharedLibrary {
 public:
  /// Tries `$environment` alone where it is set (a file); otherwise `name` on the loader's path,
  /// then in `folders`.
  SharedLibrary(const std::string& name, const char* environment,
                const std::vector<std::string>& folders);

  /// One line that says what was looked for, and what to set; empty when the library is open.
  [[nodiscard]] const std::string& why_missing() const { return why_missing_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Null where the library has no such function, or is missing.
  [[nodiscard]] void* function(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string path_, why_missing_;
};

/// Folders in which the CUDA toolkit keeps its libraries, and to which packages of Python,
/// PyTorch's among them, bring them along: `nvidia/<package>/lib` of every site-packages.
[[nodiscard]] std::vector<std::string> cuda_library_folders(
    const std::vector<std::string>& packages);

}  // namespace attest
