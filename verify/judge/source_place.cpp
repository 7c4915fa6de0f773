#include "verify/judge/source_place.hpp"

#include <regex>

namespace attest {

std::optional<SourcePlace> source_place_in(const std::string& sentence) {
  static const std::regex place(R"( at ([\w./-]+\.(?:cu|cuh|cpp|hpp|h)):(\d{1,8})\b)");
  std::smatch match;
  if (!std::regex_search(sentence, match, place)) return std::nullopt;
  return SourcePlace{.file = match[1], .line = std::stoi(match[2])};
}

}  // namespace attest
