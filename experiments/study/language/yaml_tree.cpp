#include "experiments/study/language/yaml_tree.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr std::size_t longest_text = std::size_t{256} << 10U;
constexpr std::size_t most_values = 20'000;
constexpr std::size_t deepest = 16;

Place place_of(const YAML::Mark& mark) {
  return {std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
}

/// The first line that is not UTF-8.
std::optional<Place> line_of_other_bytes(std::string_view text) {
  for (int line = 1;; ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!is_utf8(text.substr(0, end))) return Place{line, 1};
    if (end == text.size()) return std::nullopt;
    text.remove_prefix(end + 1);
  }
}

/// The first tab before the first letter of a line.
std::optional<Place> indenting_tab(std::string_view text) {
  for (int line = 1;; ++line) {
    const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
    if (text.substr(first).starts_with('\t')) return Place{line, static_cast<int>(first) + 1};
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
}

/// Builds the tree from the parser's events; throws StudyError.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string_view text) : text_(text) {}

  YamlNode root;

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, "", anchor, YamlNode::Kind::null);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw StudyError{place_of(mark), "aliases (*name) are not allowed; write the value again"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode& node = add(mark, tag, anchor, YamlNode::Kind::scalar);
    node.is_quoted = tag == "!";
    node.text = value;
    // Of folded and multi-line texts one line is made.
    while (node.text.ends_with('\n')) node.text.pop_back();
    std::ranges::replace(node.text, '\n', ' ');
    const auto first = static_cast<std::size_t>(std::max(mark.pos, 0));
    const char quote = first < text_.size() ? text_[first] : '\0';
    if (!node.is_quoted || (quote != '"' && quote != '\'')) return;
    ++node.text_place.column;
    // The parser takes the end of the file for the end of the text.
    if (!has_end(first + 1, quote)) throw StudyError{node.place, "the text has no closing quote"};
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  [[nodiscard]] bool has_end(std::size_t at, char quote) const {
    while (at < text_.size() && text_[at] != quote) at += quote == '"' && text_[at] == '\\' ? 2 : 1;
    return at < text_.size();
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    if (open_.size() >= deepest) {
      throw StudyError{place_of(mark), fmt::format("values are nested more than {} deep", deepest)};
    }
    open_.push_back(&add(mark, tag, anchor, kind));
  }

  /// References stay good: a list grows only after its last item is complete.
  YamlNode& add(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                YamlNode::Kind kind) {
    const Place place = place_of(mark);
    if (anchor != 0) throw StudyError{place, "anchors (&name) are not allowed"};
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw StudyError{place, fmt::format("tags are not allowed: '{}'", printable(tag))};
    }
    if (++values_ > most_values) {
      throw StudyError{place, fmt::format("there are more than {} values", most_values)};
    }
    YamlNode node{.kind = kind, .place = place, .text_place = place};
    if (open_.empty()) return root = std::move(node);
    YamlNode& parent = *open_.back();
    const bool is_key =
        parent.kind == YamlNode::Kind::map && parent.keys.size() == parent.items.size();
    if (is_key && kind != YamlNode::Kind::scalar) {
      throw StudyError{place, "a key is a single word"};
    }
    // The parser notices only behind it that a value is not there.
    const bool is_nothing = kind == YamlNode::Kind::null && parent.kind == YamlNode::Kind::map;
    if (is_nothing) node.place = parent.keys.back().place;
    std::vector<YamlNode>& siblings = is_key ? parent.keys : parent.items;
    return siblings.emplace_back(std::move(node));
  }

  std::string_view text_;
  std::vector<YamlNode*> open_;
  std::size_t values_ = 0;
};

}  // namespace

std::string_view name_of(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return "a single value";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      break;
  }
  return "keys with values";
}

std::variant<YamlNode, StudyError> parse_yaml(std::string_view text) {
  if (text.size() > longest_text) {
    return StudyError{
        {}, fmt::format("the file has {} bytes; allowed: up to {}", text.size(), longest_text)};
  }
  if (const auto line = line_of_other_bytes(text)) {
    return StudyError{*line, "the line is not UTF-8"};
  }
  if (const auto tab = indenting_tab(text)) {
    return StudyError{*tab, "a tab indents the line; YAML takes spaces"};
  }
  TreeBuilder builder(text);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return YamlNode{};
    TreeBuilder rest(text);
    if (parser.HandleNextDocument(rest)) {
      return StudyError{rest.root.place, "a file holds one study; here a second document begins"};
    }
  } catch (const StudyError& error) {
    return error;
  } catch (const YAML::Exception& error) {
    return StudyError{place_of(error.mark),
                      fmt::format("this is no YAML: {}", printable(error.msg, 200))};
  }
  return std::move(builder.root);
}

}  // namespace attest
