#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace attest {

/// Adds `--seed`, 0 to 2^64 - 1. CLI11 alone takes -1 for the largest seed, and what is larger for
/// another one.
inline CLI::Option* add_seed_option(CLI::App& command, std::uint64_t& seed,
                                    const std::string& what) {
  const auto why_not = [](const std::string& text) {
    std::uint64_t value = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    return error == std::errc() && end == last
               ? ""
               : "Value " + text + " not in range 0 to 18446744073709551615";
  };
  return command.add_option("--seed", seed, what)
      ->check(CLI::Validator(why_not, "", "seed"))
      ->capture_default_str();
}

}  // namespace attest
