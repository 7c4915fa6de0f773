#include "experiments/study/language/read_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/near_names.hpp"
#include "core/base/text.hpp"
#include "experiments/study/language/schema.hpp"
#include "experiments/study/language/study_names.hpp"

namespace attest {
namespace {

constexpr std::size_t most_values = 1000;

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

/// The nodes of one axis, a range written out.
std::vector<YamlNode> values_of(const YamlNode& node, const std::string& name,
                                std::vector<StudyError>& errors) {
  if (node.kind == YamlNode::Kind::scalar) return {node};
  if (node.kind == YamlNode::Kind::list) return node.items;
  const auto number = [&](std::string_view key) {
    const YamlNode* value = value_of_key(node, key);
    return value == nullptr ? std::nullopt : number_of(value->text);
  };
  const double from = number("from").value_or(0), to = number("to").value_or(0);
  const auto step = number("step"), factor = number("factor");
  std::vector<YamlNode> values;
  if (from > to || (factor && from <= 0)) {
    errors.push_back(
        {node.place, fmt::format("'{}' goes from {} to {}; allowed: upwards{}", name, text_of(from),
                                 text_of(to), factor ? " and, with a factor, from above 0" : "")});
    return values;
  }
  for (double value = from; value <= to && values.size() <= most_values;
       value = step ? value + *step : value * *factor) {
    YamlNode scalar{.kind = YamlNode::Kind::scalar, .place = node.place, .text_place = node.place};
    scalar.text = text_of(value);
    values.push_back(std::move(scalar));
  }
  return values;
}

/// Maps of a map or of a list of maps.
std::vector<const YamlNode*> maps_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::map) return {&node};
  std::vector<const YamlNode*> maps;
  for (const YamlNode& item : node.items) maps.push_back(&item);
  return maps;
}

const YamlNode* key_of(const YamlNode& map, std::string_view name) {
  const auto found = std::ranges::find(map.keys, name, &YamlNode::text);
  return found == map.keys.end() ? nullptr : &*found;
}

bool is_expression(const YamlNode& value) {
  return !number_of(value.text);
}

/// A value that is computed may use what is given as numbers, not what is computed itself.
std::optional<Condition> computed_value(const YamlNode& value, const YamlNode& map,
                                        const Axis& axis, std::vector<StudyError>& errors) {
  static const Vocabulary vocabulary = problem_vocabulary();
  const auto read = read_expression(value, vocabulary, Scope::values, false, errors);
  if (!read) return std::nullopt;
  for (const std::string& name : names_in(*read->expression)) {
    const YamlNode* other = value_of_key(map, name);
    const bool is_computed =
        other != nullptr && other->kind != YamlNode::Kind::map &&
        (other->kind == YamlNode::Kind::list ? std::ranges::any_of(other->items, is_expression)
                                             : is_expression(*other));
    if (other != nullptr && name != axis.name && !is_computed) continue;
    const bool is_given = name == axis.name || is_computed;
    errors.push_back(
        {value.place, fmt::format("'{}' is computed from {}, which is {}", axis.full_name(), name,
                                  is_given ? "computed itself" : "not given")});
    return std::nullopt;
  }
  return read;
}

/// In one form: `064` is 64, and 2 the second name of a choice. Nothing after adding an error.
std::optional<WrittenValue> written_value(const YamlNode& value, const YamlNode& map,
                                          const Axis& axis, std::vector<StudyError>& errors) {
  const std::optional<double> number = number_of(value.text);
  if (axis.registered_choices != nullptr) {
    const std::vector<std::string> names = axis.names();
    if (std::ranges::find(names, value.text) != names.end()) return value.text;
    errors.push_back(
        {value.place, fmt::format("input {} '{}' is unknown; {}", axis.name, printable(value.text),
                                  near_or_all(value.text, names))});
    return std::nullopt;
  }
  if (axis.is_choice() && number && axis.group == Axis::Group::plan) {
    return axis.choices[static_cast<std::size_t>(*number) - 1];
  }
  if (axis.is_choice()) return value.text;
  if (number) return *number;
  const std::optional<Condition> computed = computed_value(value, map, axis, errors);
  return computed ? std::optional<WrittenValue>(*computed) : std::nullopt;
}

std::string text_as_written(const WrittenValue& value) {
  const auto known = stated(value);
  return known ? text_of(*known) : std::get<Condition>(value).text;
}

VariedAxis read_axis(const YamlNode& key, const YamlNode& node, const YamlNode& map,
                     const Axis& axis, std::vector<StudyError>& errors) {
  const std::string name = axis.full_name();
  VariedAxis varied{.axis = &axis, .place = key.place};
  const std::vector<YamlNode> nodes = values_of(node, name, errors);
  std::vector<std::string> texts;
  for (const YamlNode& value : nodes) {
    if (axis.group == Axis::Group::plan && value.text == "all") {
      varied.is_every_value = true;
      if (nodes.size() > 1) {
        errors.push_back(
            {node.place, fmt::format("'{}' has all and more; all stands alone", name)});
      }
      continue;
    }
    const std::optional<WrittenValue> written = written_value(value, map, axis, errors);
    if (!written) continue;
    std::string text = text_as_written(*written);
    if (std::ranges::find(texts, text) != texts.end()) {
      errors.push_back(
          {value.place, fmt::format("'{}' has the value {} twice", name, printable(text))});
    }
    texts.push_back(std::move(text));
    varied.values.push_back(*written);
  }
  if (varied.values.size() > most_values) {
    errors.push_back({node.place, fmt::format("'{}' has more than {} values", name, most_values)});
    varied.values.clear();
  }
  return varied;
}

void check_problem(const YamlNode& map, std::vector<StudyError>& errors) {
  const YamlNode* length = key_of(map, "length");
  for (const char* name : {"query_len", "key_len"}) {
    const YamlNode* other = key_of(map, name);
    if (length == nullptr || other == nullptr) continue;
    errors.push_back({other->place, fmt::format("'problem.{}' and 'problem.length' are both given; "
                                                "length stands for both lengths",
                                                name)});
  }
  const YamlNode* mask = value_of_key(map, "mask");
  const auto is_window = [](const YamlNode& value) { return value.text.starts_with("window"); };
  const bool has_window =
      mask != nullptr && (is_window(*mask) || std::ranges::any_of(mask->items, is_window));
  for (const char* name : {"window_left", "window_right"}) {
    const YamlNode* side = key_of(map, name);
    if (side == nullptr || has_window) continue;
    errors.push_back(
        {side->place, fmt::format("'problem.{}' is given, but no mask is a window", name)});
  }
}

}  // namespace

std::optional<Condition> read_expression(const YamlNode& node, const Vocabulary& vocabulary,
                                         Scope scope, bool wants_truth,
                                         std::vector<StudyError>& errors) {
  const auto fail = [&](const ExpressionError& error) {
    Place place = node.text_place;
    place.column += static_cast<int>(error.at);
    errors.push_back({place, error.sentence});
  };
  ParsedExpression parsed = parse_expression(node.text);
  if (!parsed.expression) {
    fail(parsed.error);
    return std::nullopt;
  }
  const auto wanted = wants_truth ? ValueType::Kind::truth : ValueType::Kind::number;
  const auto problems = check(*parsed.expression, vocabulary, scope, wanted);
  for (const ExpressionError& error : problems) fail(error);
  if (!problems.empty()) return std::nullopt;
  return Condition{.text = node.text,
                   .expression = std::make_shared<const Expression>(*std::move(parsed.expression)),
                   .place = node.text_place};
}

std::vector<Grid> read_grids(Axis::Group group, const YamlNode& node,
                             std::vector<StudyError>& errors) {
  std::vector<Grid> grids;
  for (const YamlNode* map : maps_of(node)) {
    if (group == Axis::Group::problem) check_problem(*map, errors);
    Grid& grid = grids.emplace_back();
    for (std::size_t i = 0; i < map->keys.size(); ++i) {
      const Axis& axis = *find_axis(group, map->keys[i].text);
      grid.push_back(read_axis(map->keys[i], map->items[i], *map, axis, errors));
    }
    if (group == Axis::Group::layout && !grid.empty() &&
        value_of_key(*map, "page_size") == nullptr) {
      errors.push_back(
          {map->keys.front().place, fmt::format("'{}' is given, but no 'layout.page_size'",
                                                grid.front().axis->full_name())});
    }
  }
  return grids;
}

}  // namespace attest
