#include "core/run/kernel_name.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

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

/// `f<(Executor)1, 2>` -> `f<2>`: who compiled it is no part of a kernel's name.
std::string without_executor(std::string name) {
  constexpr std::string_view cast = "(Executor)";
  for (std::size_t at; (at = name.find(cast)) != std::string::npos;) {
    std::size_t end = at + cast.size();
    while (end < name.size() && is_word(name[end])) ++end;
    if (end < name.size() && name[end] == ',') {
      end = std::min(name.find_first_not_of(' ', end + 1), name.size());
    }
    name.erase(at, end - at);
  }
  for (std::size_t at; (at = name.find("<>")) != std::string::npos;) name.erase(at, 2);
  return name;
}

/// `f<(int)2>` -> `f<2>`: some demanglers say the type of a number, some do not.
std::string without_casts(std::string name) {
  for (std::size_t at = 0; (at = name.find('(', at)) != std::string::npos;) {
    const std::size_t end = name.find(')', at);
    if (end == std::string::npos) break;
    const std::size_t next = name.find_first_not_of('-', end + 1);
    const bool is_cast =
        next != std::string::npos && std::isdigit(static_cast<unsigned char>(name[next])) != 0;
    if (is_cast)
      name.erase(at, end + 1 - at);
    else
      at = end;
  }
  return name;
}

/// `f<S{1, 0, false}>` -> `f<S{1}>`: some compilers leave out the last members that are zero.
std::string without_last_zeros(std::string name) {
  for (std::size_t end = 0; (end = name.find('}', end)) != std::string::npos; ++end) {
    const auto last = [&](std::string_view member) {
      return std::string_view(name).substr(0, end).ends_with(member) ? member.size() : 0;
    };
    while (const std::size_t zero = std::max(last(", 0"), last(", false"))) {
      end -= zero;
      name.erase(end, zero);
    }
  }
  return name;
}

/// The executor's 16-bit types, one class template, as nvcc calls them:
/// `SixteenBitFloat<&half_bits, &half_value>` -> `__half`.
std::string with_cuda_types(std::string name) {
  constexpr std::string_view of_executor = "SixteenBitFloat<";
  for (std::size_t at; (at = name.find(of_executor)) != std::string::npos;) {
    std::size_t end = name.find('>', at);  // its arguments are functions: none has a bracket
    if (end == std::string::npos) break;
    const bool is_bfloat =
        std::string_view(name).substr(at, end - at).find("bfloat16") != std::string_view::npos;
    if (std::string_view(name).substr(end).starts_with("> >")) ++end;  // two brackets stand apart
    name.replace(at, end + 1 - at, is_bfloat ? "__nv_bfloat16" : "__half");
  }
  return name;
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
  return with_cuda_types(without_last_zeros(without_casts(without_executor(std::move(name)))));
}

}  // namespace attest
