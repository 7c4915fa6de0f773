#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/language/parse_study.hpp"
#include "experiments/study/language/yaml_tree.hpp"

namespace attest {

/// Form of a single value in the file.
struct Form {
  enum class Kind { text, word, whole, number, choice, expression };
  Kind kind = Kind::text;
  std::string allowed{};     ///< for people: `a time such as 40s or 5min`
  std::string pattern{};     ///< Kind::word: regular expression of the whole value
  double low = 0, high = 0;  ///< Kind::whole and number
  /// Kind::choice: the words. Others: words allowed besides.
  std::vector<std::string> choices{};
  bool or_number = false;      ///< Kind::choice: a word may be given by its number, from 1
  bool or_expression = false;  ///< a text is an expression
};

/// A key of a study's file. This table is the only definition: the parser's complaints, the JSON
/// Schema and the reference in README.md come from it.
struct SpecKey {
  enum class Shape {
    value,        ///< one value
    list,         ///< a list of values
    one_or_list,  ///< either
    keys,         ///< `keys`, each at most once
    keys_list,    ///< a list of those
    axes,         ///< `keys`, each with a value, a list or a range {from, to, factor or step}
    axes_list     ///< those, or a list of them
  };
  std::string name;
  std::string summary{};
  Shape shape = Shape::value;
  Form form{};
  bool is_required = false;
  std::vector<SpecKey> keys{};  ///< shapes keys and axes; `form.choices` may stand in their place
};

using KeyShape = SpecKey::Shape;
/// Keys of a whole study.
[[nodiscard]] const std::vector<SpecKey>& study_keys();

/// Complaints about shapes, unknown, missing and repeated keys and forms of values.
void check_shape(const YamlNode& node, const SpecKey& key, std::vector<StudyError>& errors);
/// Complaints about the names alone of the keys of a whole file: `root` is its map.
void check_names(const YamlNode& root, const std::vector<SpecKey>& keys,
                 std::vector<StudyError>& errors);

/// nullptr when the key is not there; of repeated ones the first.
[[nodiscard]] const YamlNode* value_of_key(const YamlNode& map, std::string_view name);

/// JSON Schema (draft 7, which editors' YAML plugins read) of a study's file, a value to a line
/// where it fits.
[[nodiscard]] std::string study_json_schema();
/// The keys as a Markdown table.
[[nodiscard]] std::string study_key_table();

}  // namespace attest
