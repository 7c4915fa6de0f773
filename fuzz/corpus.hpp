#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text_file.hpp"

namespace attest {

struct Seed {
  std::string name, bytes;
};

/// Bytes of a seed's text: the text itself, but for the hexadecimal digits between two backticks.
[[nodiscard]] inline std::string unpacked(std::string_view text, std::string_view where) {
  std::string bytes;
  bool is_hexadecimal = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') {
      is_hexadecimal = !is_hexadecimal;
    } else if (!is_hexadecimal) {
      bytes += text[i];
    } else {
      unsigned char byte = 0;
      const char* const end = text.data() + std::min(i + 2, text.size());
      if (std::from_chars(text.data() + i, end, byte, 16).ptr != text.data() + i + 2) {
        throw InvalidInput(fmt::format("{}: two hexadecimal digits a byte", where));
      }
      bytes += static_cast<char>(byte);
      ++i;
    }
  }
  if (is_hexadecimal) throw InvalidInput(fmt::format("{}: a backtick is not closed", where));
  return bytes;
}

/// The seeds of a corpus, whose form fuzz/corpus.py tells. Throws InvalidInput where that is
/// broken, and when two seeds have one name.
[[nodiscard]] inline std::vector<Seed> seeds_of(std::string_view text) {
  std::vector<Seed> seeds;
  while (!text.empty()) {
    const std::string_view head = text.substr(0, text.find('\n'));
    const std::string name(head.starts_with("=== ") ? head.substr(4, head.find(':') - 4) : "");
    if (name.empty() || name.find(' ') != std::string::npos) {
      throw InvalidInput(fmt::format("'{}': no line `=== NAME` or `=== NAME: why`", head));
    }
    if (std::ranges::count(seeds, name, &Seed::name) > 0) {
      throw InvalidInput(fmt::format("{}: two seeds have this name", name));
    }
    text.remove_prefix(std::min(head.size() + 1, text.size()));
    if (!text.ends_with('\n')) throw InvalidInput(name + ": the file ends within a line");
    const std::size_t end = std::min(text.find("\n=== "), text.size() - 1);
    seeds.push_back({name, unpacked(text.substr(0, end), name)});
    text.remove_prefix(end + 1);
  }
  return seeds;
}

/// Seeds of fuzz/corpus/`target`.txt.
[[nodiscard]] inline std::vector<Seed> read_seeds(const std::string& target) {
  constexpr std::size_t most_bytes = 1 << 20;
  return seeds_of(read_text_file(
      std::filesystem::path(ATTEST_SOURCE_DIR) / "fuzz/corpus" / (target + ".txt"), most_bytes));
}

}  // namespace attest
