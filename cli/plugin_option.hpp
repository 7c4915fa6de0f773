#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace attest {

/// Adds `--plugin`, shared objects with kernels of the user's own; `more` says what it changes.
inline CLI::Option* add_plugin_option(CLI::App& command, std::vector<std::string>& plugins,
                                      const std::string& more = "") {
  return command
      .add_option(
          "--plugin", plugins,
          "shared object with kernels of your own (include/attest/plugin.h); repeatable" + more)
      ->allow_extra_args(false);
}

}  // namespace attest
