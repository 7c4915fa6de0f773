#include "cli/verdict_colour.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace attest {
namespace {

bool has_colours() {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0') &&
         terminal != nullptr && std::string_view(terminal) != "dumb";
}

/// `code`: of ANSI's select graphic rendition.
std::string coloured(int code, std::string_view text) {
  static const bool is_wanted = has_colours();
  return is_wanted ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

std::string as_good(std::string_view text) {
  return coloured(32, text);
}

std::string as_bad(std::string_view text) {
  return coloured(31, text);
}

std::string as_open(std::string_view text) {
  return coloured(33, text);
}

}  // namespace attest
