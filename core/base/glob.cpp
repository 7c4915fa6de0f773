#include "core/base/glob.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

std::vector<std::string> single_globs(std::string_view globs) {
  std::vector<std::string> single;
  while (true) {
    const std::size_t comma = globs.find(',');
    single.emplace_back(globs.substr(0, comma));
    if (comma == std::string_view::npos) return single;
    globs.remove_prefix(comma + 1);
  }
}

bool matches(const std::string& name, const std::string& glob) {
  return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

bool is_pattern(std::string_view glob) {
  return glob.find_first_of("*?[") != std::string_view::npos;
}

bool matches_glob(std::string_view name, std::string_view globs) {
  return std::ranges::any_of(single_globs(globs), [&](const std::string& glob) {
    return matches(std::string(name), glob);
  });
}

void require_matches(const Choice& choice, std::string_view globs,
                     std::span<const std::string> names) {
  for (const std::string& glob : single_globs(globs)) {
    if (std::ranges::any_of(names, [&](const std::string& name) { return matches(name, glob); })) {
      continue;
    }
    const auto near = is_pattern(glob) ? std::vector<std::string>{} : near_names(glob, names);
    throw InvalidInput(fmt::format("{} '{}' matches no {}; {}", choice.option, printable(glob),
                                   choice.thing,
                                   near.empty() ? fmt::format("see {}", choice.see)
                                                : fmt::format("near: {}", fmt::join(near, ", "))));
  }
}

}  // namespace attest
