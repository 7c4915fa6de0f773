#pragma once

#include <string>

namespace attest {

/// What `--json` prints: JSON and nothing else. While one lives that is wanted, it alone has
/// stdout; what kernels and plugins in this process print there goes to stderr.
class JsonOutput {
 public:
  /// Throws MachineError if stdout cannot be taken.
  explicit JsonOutput(bool is_wanted);
  JsonOutput(const JsonOutput&) = delete;
  JsonOutput& operator=(const JsonOutput&) = delete;
  ~JsonOutput();
  /// One object, as a line; nothing if it is not wanted.
  void print(const std::string& object);

 private:
  int stdout_ = -1;  ///< what was stdout; -1: not wanted
};

}  // namespace attest
