#pragma once

#include <stdexcept>

namespace attest {

/// Error in what a user typed or a file holds. One line: what, got, allowed, where. Ends the
/// program with exit code 2.
class InvalidInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The machine cannot do it: no GPU, a CUDA error, a missing library, a full disk. Exit code 3.
class MachineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A kernel under test says that it failed, for a problem that it claims to support: a verdict
/// about the kernel, not about the machine.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Exit codes of every subcommand.
enum class ExitCode : int {
  passed = 0,
  verdict_failed = 1,
  bad_input = 2,
  machine = 3,
  inconclusive = 4,  ///< nothing failed, and of some kernel too little was judged for a pass
  interrupted = 130  ///< Ctrl-C or SIGTERM; as shells count
};

}  // namespace attest
