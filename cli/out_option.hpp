#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace attest {

/// Adds `--out`, a path that is not empty: CLI11 takes `--out ""`, and the current folder would
/// fill.
template <typename Path>
CLI::Option* add_out_option(CLI::App& command, Path& out, const std::string& what) {
  const auto why_not = [](const std::string& text) {
    return text.empty() ? "the path is empty" : "";
  };
  return command.add_option("--out", out, what)->check(CLI::Validator(why_not, "", "path"));
}

}  // namespace attest
