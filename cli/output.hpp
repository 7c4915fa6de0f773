#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace attest {

/// Output of `--json`: JSON and nothing else. While one lives that is wanted, it alone has stdout;
/// what kernels and plugins in this process print there goes to stderr.
class JsonOutput {
 public:
  /// Takes stdout if `is_wanted`. Throws MachineError if stdout cannot be taken.
  explicit JsonOutput(bool is_wanted);
  JsonOutput(const JsonOutput&) = delete;
  JsonOutput& operator=(const JsonOutput&) = delete;
  ~JsonOutput();
  /// One object, as a line; nothing if it is not wanted.
  void print(const std::string& object);

 private:
  int stdout_ = -1;  ///< what was stdout; -1: not wanted
};

/// Text that says how something ended, for stdout: green, red or yellow on a terminal, plain in a
/// pipe or a file and where NO_COLOR is set (no-color.org).
[[nodiscard]] std::string as_good(std::string_view text);
[[nodiscard]] std::string as_bad(std::string_view text);
[[nodiscard]] std::string as_open(std::string_view text);

/// `  replay   ./attest replay FILE`. ATTEST_COMMAND is what stands there for the program: a
/// wheel's is not ./attest.
[[nodiscard]] std::string replay_line(const std::filesystem::path& counterexample);

/// Trouble of the machine that may wait: a full disk must not take along the results that are not
/// on it. The first is told at the end.
class Trouble {
 public:
  /// Runs `work`; false if it threw a MachineError, of which the first is kept.
  template <typename Work>
  bool tries(const Work& work) {
    try {
      work();
      return true;
    } catch (const MachineError& error) {
      if (first_.empty()) first_ = error.what();
      return false;
    }
  }
  [[nodiscard]] bool is_any() const { return !first_.empty(); }
  /// Throws MachineError with the first error, if there was any.
  void tell() const {
    if (!first_.empty()) throw MachineError(first_);
  }

 private:
  std::string first_;
};

/// Makes Ctrl-C and SIGTERM only set a flag from now on, once: the second one ends the program as
/// usual.
void catch_interrupts();
[[nodiscard]] bool was_interrupted();

}  // namespace attest
