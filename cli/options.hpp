#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/problem.hpp"
#include "verify/campaign/campaign.hpp"

namespace attest {

// Options that several subcommands have, and the texts of their values.

/// Throws InvalidInput naming an option of the command, which is called `name`, that was given an
/// empty value, which is what a variable of a script that is not set leaves: most options would do
/// without it, and a path would be the current folder. A Plan alone may be empty: some kernels have
/// nothing to choose.
void require_values(const CLI::App& command, const std::string& name);

/// Adds `--plugin`, shared objects with kernels of the user's own; `more` says what it changes.
CLI::Option* add_plugin_option(CLI::App& command, std::vector<std::string>& plugins,
                               const std::string& more = "");

/// Adds `--seed`, 0 to 2^64 - 1. CLI11 alone takes -1 for the largest seed, and what is larger for
/// another one.
CLI::Option* add_seed_option(CLI::App& command, std::uint64_t& seed, const std::string& what);

/// Selection of kernels and problems: the options that commands which time have in common.
struct ProblemSelection {
  std::string kernels = "*";                  ///< globs
  bool names_kernels = false;                 ///< --kernel was given
  std::vector<std::string> plugins;           ///< paths
  std::vector<std::string> problems, suites;  ///< texts; names
  std::string operation;                      ///< that they ask for; empty: as they say

  /// Loads the plugins and gives the glob over kernels: the one that was given, else all that run
  /// here of the plugins, else `*`.
  [[nodiscard]] std::string kernel_glob() const;
};

/// Adds --kernel, --operation, --plugin, --problem and --suite; `without_any` says what happens
/// without a suite, or nothing. `selection` outlives the command.
void add_problem_options(CLI::App& command, ProblemSelection& selection,
                         const std::string& without_any = "");

/// The problems of a selection, all of one operation: those named first, then those of the suites;
/// where there are none, those of the suite `without_any`, if it is one. Throws InvalidInput for a
/// text that is none, an unknown suite, and an operation whose inputs are not those that are timed.
[[nodiscard]] std::vector<Problem> problems_of(const ProblemSelection& selection,
                                               const std::string& without_any = "");

// What follows reads the texts of options. All throw InvalidInput naming the option, what it got
// and what is allowed.

/// A positive time in seconds: `90s`, `5min`, `1h`.
[[nodiscard]] double parse_seconds(std::string_view option, const std::string& text);
/// A number of bytes, at least `least`: `512MiB`, `8GiB`.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view option, const std::string& text,
                                        double least = 1);
/// Memory of a worker process: what the program itself needs must fit.
inline constexpr double least_worker_bytes = 0x1p26;
/// Help text of --layouts.
inline constexpr const char* layouts_help =
    "how K and V lie in memory: contiguous, or in pages as reports print it: 'paged16', "
    "'paged16/csr/shuffled1'; default: contiguous, and paged16 where the kernel takes pages alone";

/// A part of several: `2/5`, the second of five.
[[nodiscard]] Shard parse_shard(std::string_view option, const std::string& text);

}  // namespace attest
