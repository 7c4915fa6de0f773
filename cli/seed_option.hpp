#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace attest {

/// Adds `--seed`, 0 to 2^64 - 1. CLI11 alone takes -1 for the largest seed.
inline CLI::Option* add_seed_option(CLI::App& command, std::uint64_t& seed,
                                    const std::string& what) {
  const auto why_not = [](const std::string& text) {
    return text.starts_with('-') ? "Value " + text + " not in range 0 to 18446744073709551615" : "";
  };
  return command.add_option("--seed", seed, what)
      ->check(CLI::Validator(why_not, "", "seed"))
      ->capture_default_str();
}

}  // namespace attest
