#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "experiments/study/language/parse_study.hpp"

namespace attest {

/// A YAML value with its place. Everything is text: what a text means is decided by its key.
struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Place place;
  /// Place of the text's first byte, where it stands in one piece on its line; else that of the
  /// value.
  Place text_place;
  bool is_quoted = false;
  std::string text{};             ///< Kind::scalar
  std::vector<YamlNode> keys{};   ///< Kind::map, scalars, as many as items; may repeat
  std::vector<YamlNode> items{};  ///< Kind::list, Kind::map
};
/// In words: `a list`.
[[nodiscard]] std::string_view name_of(YamlNode::Kind kind);

/// The one document of a YAML text, or why it is none. A text of more than 256 KiB, with more than
/// 20,000 values, nested more than 16 deep, or with anchors, aliases or tags is refused: a study
/// needs none of them, and small texts could stand for huge ones. Never throws.
[[nodiscard]] std::variant<YamlNode, StudyError> parse_yaml(std::string_view text);

}  // namespace attest
