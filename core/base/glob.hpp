#pragma once

#include <span>
#include <string>
#include <string_view>

namespace attest {

/// Shell-style match of a whole name: `*` and `?`. Several globs are separated by commas.
[[nodiscard]] bool matches_glob(std::string_view name, std::string_view globs);

/// True if a text is more than a name: it has `*`, `?` or `[`.
[[nodiscard]] bool is_pattern(std::string_view glob);

/// Option that chooses by globs, as complaints name it.
struct Choice {
  std::string_view option;  ///< `--kernel`
  std::string_view thing;   ///< `kernel`
  std::string_view see;     ///< `attest list kernels`
};

/// Throws InvalidInput for the first of the globs that matches none of the names, which is a typing
/// error: `--kernel 'k2_typo' matches no kernel; near: k2_coalesced`.
void require_matches(const Choice& choice, std::string_view globs,
                     std::span<const std::string> names);

}  // namespace attest
