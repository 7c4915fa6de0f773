#include "experiments/study/language/schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <regex>

#include "core/base/near_names.hpp"
#include "core/base/quantity.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

using Kind = YamlNode::Kind;
constexpr std::size_t longest_word = 200, longest_text = 1000;
constexpr double no_limit = 1e15;  // larger limits are not worth saying

std::string allowed_of(const Form& form) {
  if (!form.allowed.empty()) return form.allowed;
  if (form.kind == Form::Kind::choice) return fmt::format("{}", fmt::join(form.choices, ", "));
  std::string allowed = form.kind == Form::Kind::whole ? "a whole number" : "a number";
  if (form.low > -no_limit) allowed += fmt::format(" from {}", format_number(form.low));
  if (form.high < no_limit) allowed += fmt::format(" to {}", format_number(form.high));
  return allowed + (form.choices.empty() ? "" : ", or all") +
         (form.or_expression ? ", or an expression over other fields" : "");
}

bool is_number_in(const YamlNode& node, const Form& form, double low, double high) {
  double value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [rest, error] = std::from_chars(node.text.data(), end, value);
  if (node.is_quoted || error != std::errc{} || rest != end) return false;
  return value >= low && value <= high &&
         (form.kind == Form::Kind::number || value == std::floor(value));
}

/// A text that is no number at all, for fields that take expressions.
bool may_be_expression(const YamlNode& node) {
  double value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [rest, error] = std::from_chars(node.text.data(), end, value);
  return !node.text.empty() && !(rest == end && error != std::errc::invalid_argument);
}

/// Compiled once: a list may have thousands of values.
const std::regex& compiled(const std::string& pattern) {
  static std::map<std::string, std::regex> regexes;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  return regexes.try_emplace(pattern, pattern).first->second;
}

bool fits(const YamlNode& node, const Form& form) {
  if (std::ranges::find(form.choices, node.text) != form.choices.end()) return true;
  switch (form.kind) {
    case Form::Kind::text:
    case Form::Kind::expression:
      return !node.text.empty() && node.text.size() <= longest_text;
    case Form::Kind::word:
      return node.text.size() <= longest_word &&
             std::regex_match(node.text, compiled(form.pattern));
    case Form::Kind::whole:
    case Form::Kind::number:
      return is_number_in(node, form, form.low, form.high) ||
             (form.or_expression && may_be_expression(node));
    case Form::Kind::choice: {
      const auto words =
          std::ranges::count_if(form.choices, [](const auto& c) { return c != "all"; });
      return form.or_number && is_number_in(node, form, 1, static_cast<double>(words));
    }
  }
  return false;
}

class ShapeCheck {
 public:
  explicit ShapeCheck(std::vector<StudyError>& errors) : errors_(errors) {}

  void check(const YamlNode& node, const SpecKey& key, const std::string& path) {
    switch (key.shape) {
      case KeyShape::value:
        return check_value(node, key.form, path);
      case KeyShape::one_or_list:
        if (node.kind == Kind::scalar) return check_value(node, key.form, path);
        [[fallthrough]];
      case KeyShape::list:
        return check_list(node, path, allowed_of(key.form),
                          [&](const YamlNode& item) { check_value(item, key.form, path); });
      case KeyShape::keys:
        if (is_word_instead(node, key)) return;
        return check_keys(node, key.keys, path, words_of(key));
      case KeyShape::keys_list:
        return check_list(node, path, "keys with values: " + names_of(key.keys),
                          [&](const YamlNode& item) { check_keys(item, key.keys, path); });
      case KeyShape::axes_list:
        if (node.kind == Kind::list) {
          return check_list(node, path, "keys with values: " + names_of(key.keys),
                            [&](const YamlNode& item) { check_axes(item, key.keys, path); });
        }
        [[fallthrough]];
      case KeyShape::axes:
        if (is_word_instead(node, key)) return;
        return check_axes(node, key.keys, path, words_of(key));
    }
  }

  /// Of a map: known, each once, none missing. False: it is no map.
  bool check_names(const YamlNode& node, const std::vector<SpecKey>& keys, const std::string& path,
                   const std::string& instead) {
    if (node.kind != Kind::map) {
      const std::string what = path.empty() ? "the file" : fmt::format("'{}'", path);
      fail(node, fmt::format("{} has {}; allowed: {}keys with values: {}", what, name_of(node.kind),
                             instead, names_of(keys)));
      return false;
    }
    std::vector<std::string> names;
    for (const SpecKey& key : keys) names.push_back(key.name);
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const YamlNode& got = node.keys[i];
      if (std::ranges::find(names, got.text) == names.end()) {
        fail(got, fmt::format("key '{}' is unknown{}; {}", printable(got.text),
                              path.empty() ? "" : fmt::format(" in '{}'", path),
                              near_or_all(got.text, names)));
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (node.keys[j].text != got.text) continue;
        fail(got, fmt::format("key '{}' is there twice; the first is in line {}",
                              printable(got.text), node.keys[j].place.line));
        break;
      }
    }
    for (const SpecKey& key : keys) {
      if (!key.is_required || value_of_key(node, key.name) != nullptr) continue;
      fail(node, fmt::format("key '{}' is missing: {}", joined(path, key.name), key.summary));
    }
    return true;
  }

 private:
  static std::string joined(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
  }
  static std::string names_of(const std::vector<SpecKey>& keys) {
    std::vector<std::string> names;
    for (const SpecKey& key : keys) names.push_back(key.name);
    return fmt::format("{}", fmt::join(names, ", "));
  }
  void fail(const YamlNode& node, std::string sentence) {
    errors_.push_back({node.place, std::move(sentence)});
  }

  /// Words that may stand in the place of keys.
  static std::string words_of(const SpecKey& key) {
    return key.form.choices.empty() ? ""
                                    : fmt::format("{}, or ", fmt::join(key.form.choices, ", "));
  }
  static bool is_word_instead(const YamlNode& node, const SpecKey& key) {
    return node.kind == Kind::scalar &&
           std::ranges::find(key.form.choices, node.text) != key.form.choices.end();
  }

  void check_value(const YamlNode& node, const Form& form, const std::string& path) {
    if (node.kind == Kind::null || (node.kind == Kind::scalar && node.text.empty())) {
      return fail(node, fmt::format("'{}' has no value; allowed: {}", path, allowed_of(form)));
    }
    if (node.kind != Kind::scalar) {
      return fail(node, fmt::format("'{}' has {}; allowed: {}", path, name_of(node.kind),
                                    allowed_of(form)));
    }
    if (std::ranges::any_of(node.text, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
      return fail(node, fmt::format("'{}' holds a control byte: '{}'", path, printable(node.text)));
    }
    if (fits(node, form)) return;
    std::string allowed = "allowed: " + allowed_of(form);
    if (form.kind == Form::Kind::choice) allowed = near_or_all(node.text, form.choices);
    if ((form.kind == Form::Kind::text || form.kind == Form::Kind::expression) &&
        node.text.size() > longest_text) {
      return fail(node, fmt::format("'{}' has {} bytes; allowed: up to {}", path, node.text.size(),
                                    longest_text));
    }
    fail(node, fmt::format("'{}' is {}'{}'; {}", path, node.is_quoted ? "the text " : "",
                           printable(node.text), allowed));
  }

  template <typename CheckItem>
  void check_list(const YamlNode& node, const std::string& path, const std::string& allowed,
                  const CheckItem& check_item) {
    if (node.kind != Kind::list) {
      return fail(node, fmt::format("'{}' has {}; allowed: a list of: {}", path, name_of(node.kind),
                                    allowed));
    }
    if (node.items.empty())
      fail(node, fmt::format("'{}' is an empty list; allowed: one value or more", path));
    for (const YamlNode& item : node.items) check_item(item);
  }

  void check_keys(const YamlNode& node, const std::vector<SpecKey>& keys, const std::string& path,
                  const std::string& instead = "") {
    if (!check_names(node, keys, path, instead)) return;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const auto key = std::ranges::find(keys, node.keys[i].text, &SpecKey::name);
      if (key != keys.end()) check(node.items[i], *key, joined(path, key->name));
    }
  }

  void check_axes(const YamlNode& node, const std::vector<SpecKey>& keys, const std::string& path,
                  const std::string& instead = "") {
    if (!check_names(node, keys, path, instead)) return;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const auto key = std::ranges::find(keys, node.keys[i].text, &SpecKey::name);
      if (key == keys.end()) continue;
      const YamlNode& value = node.items[i];
      const std::string name = joined(path, key->name);
      if (value.kind == Kind::map) {
        check_range(value, key->form, name);
      } else if (value.kind == Kind::list) {
        check_list(value, name, allowed_of(key->form),
                   [&](const YamlNode& item) { check_value(item, key->form, name); });
      } else {
        check_value(value, key->form, name);
      }
    }
  }

  void check_range(const YamlNode& node, const Form& form, const std::string& path) {
    if (form.kind == Form::Kind::choice || form.kind == Form::Kind::word) {
      return fail(node,
                  fmt::format("'{}' has a range; allowed: {}, or a list", path, allowed_of(form)));
    }
    Form end = form;
    end.or_expression = false;
    end.choices.clear();
    Form step{.kind = form.kind, .low = form.kind == Form::Kind::whole ? 1 : 1e-30, .high = 0x1p53};
    Form factor{
        .kind = Form::Kind::number, .allowed = "a number above 1", .low = 1.0001, .high = 0x1p20};
    const std::vector<SpecKey> keys{
        {.name = "from", .summary = "the first value", .form = end, .is_required = true},
        {.name = "to", .summary = "the last value", .form = end, .is_required = true},
        {.name = "step", .form = step},
        {.name = "factor", .form = factor}};
    check_keys(node, keys, path);
    const bool has_step = value_of_key(node, "step") != nullptr;
    if (has_step == (value_of_key(node, "factor") != nullptr)) {
      fail(node, fmt::format("'{}' is a range; it needs either a step or a factor", path));
    }
  }

  std::vector<StudyError>& errors_;
};

}  // namespace

void check_shape(const YamlNode& node, const SpecKey& key, std::vector<StudyError>& errors) {
  ShapeCheck(errors).check(node, key, key.name);
}

void check_names(const YamlNode& root, const std::vector<SpecKey>& keys,
                 std::vector<StudyError>& errors) {
  ShapeCheck(errors).check_names(root, keys, "", "");
}

const YamlNode* value_of_key(const YamlNode& map, std::string_view name) {
  const auto found = std::ranges::find(map.keys, name, &YamlNode::text);
  return found == map.keys.end() ? nullptr
                                 : &map.items[static_cast<std::size_t>(found - map.keys.begin())];
}

}  // namespace attest
