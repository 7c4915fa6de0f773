#include "cli/braces.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {

std::vector<std::string> expand_braces(const std::string& option, const std::string& text) {
  const std::size_t open = text.find_first_of("{}");
  if (open == std::string::npos) return {text};
  const std::size_t close = text.find_first_of("{}", open + 1);
  if (text[open] != '{' || close == std::string::npos || text[close] != '}') {
    throw InvalidInput(
        fmt::format("{} '{}' has a brace without its partner, or one inside another; "
                    "allowed: lists such as n{{64,128}}",
                    option, printable(text)));
  }
  const std::vector<std::string> tails = expand_braces(option, text.substr(close + 1));
  std::vector<std::string> all;
  for (std::size_t begin = open + 1; begin <= close;) {
    const std::size_t end = std::min(text.find(',', begin), close);
    const std::string head = text.substr(0, open) + text.substr(begin, end - begin);
    for (const std::string& tail : tails) all.push_back(head + tail);
    begin = end + 1;
  }
  return all;
}

std::vector<std::string> expand_braces(const std::string& option,
                                       const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) {
    for (std::string& one : expand_braces(option, text)) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace attest
