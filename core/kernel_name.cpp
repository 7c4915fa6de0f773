#include "core/kernel_name.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace attest {
namespace {

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

/// `a::b::c<d::e>` -> `c<e>`.
std::string without_namespaces(std::string_view text) {
  std::string result;
  std::size_t word = 0;  // where the last word of `result` begins
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "::") {
      result.resize(word);
      ++i;
      continue;
    }
    if (is_word(text[i]) && (result.empty() || !is_word(result.back()))) word = result.size();
    result += text[i];
    if (!is_word(text[i])) word = result.size();
  }
  return result;
}

}  // namespace

std::string kernel_name_of(std::string_view demangled) {
  std::string name(demangled);
  erase_all(name, "(anonymous namespace)::");
  // The parameter list begins at the first parenthesis outside template arguments; the result's
  // type ends at the last space before it.
  std::size_t begin = 0, end = 0;
  for (int depth = 0; end < name.size(); ++end) {
    const char c = name[end];
    if (c == '(' && depth == 0) break;
    depth += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
    if (c == ' ' && depth == 0) begin = end + 1;
  }
  name = without_namespaces(std::string_view(name).substr(begin, end - begin));
  erase_all(name, "(int)");  // some demanglers say the type of a number, some do not
  erase_all(name, "(bool)");
  return name;
}

}  // namespace attest
