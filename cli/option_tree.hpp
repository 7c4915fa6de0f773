#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace attest {

/// An option or a positional argument as `--help` shows it.
struct OptionText {
  std::vector<std::string> names{};  ///< `-h`, `--help`; of a positional its name alone: `FILE`
  bool is_positional = false;
  std::string value{};  ///< `TEXT`, `INT:INT in [1 - 1024]`; empty: a flag
  std::string description{};
  std::string value_without{};  ///< its default; empty: none is shown
};

/// A subcommand as `--help` shows it.
struct CommandText {
  std::string name;  ///< with those above it: `attest study run`
  std::string description;
  std::string footer;  ///< examples, exit codes
  std::vector<OptionText> options{};
  std::vector<CommandText> subcommands{};
};

/// Tree of the program's subcommands and options, without what `--help` hides.
[[nodiscard]] CommandText option_tree(const CLI::App& app, const std::string& above = "");
/// All subcommands of a tree, itself first.
[[nodiscard]] std::vector<const CommandText*> all_commands(const CommandText& tree);

}  // namespace attest
