#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {

/// Which kernels are asked about which problems: the options that commands which time have in
/// common.
struct ProblemSelection {
  std::string kernels = "*";                  ///< globs
  bool names_kernels = false;                 ///< --kernel was given
  std::vector<std::string> plugins;           ///< paths
  std::vector<std::string> problems, suites;  ///< texts; names

  /// Loads the plugins and gives the glob over kernels: the one that was given, else all that run
  /// here of the plugins, else `*`.
  [[nodiscard]] std::string kernel_glob() const;
};

/// --kernel, --plugin, --problem and --suite; `without_any` says what happens without a suite, or
/// nothing. `selection` outlives the command.
void add_problem_options(CLI::App& command, ProblemSelection& selection,
                         const std::string& without_any = "");

/// Those named first, then those of the suites. Throws InvalidInput for a text that is none, and an
/// unknown suite.
[[nodiscard]] std::vector<Problem> problems_of(const ProblemSelection& selection);

}  // namespace attest
