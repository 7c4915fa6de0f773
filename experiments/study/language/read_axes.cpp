#include "experiments/study/language/read_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/attention/plan.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"
#include "core/inputs/input_family.hpp"
#include "experiments/study/language/layout_axis.hpp"
#include "experiments/study/language/problem_axis.hpp"
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

/// Fifteen digits: enough for every whole number of a study, and 0.1 stays 0.1.
std::string text_of_number(double value) {
  return fmt::format("{:.15g}", value);
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
    errors.push_back({node.place, fmt::format("'{}' goes from {} to {}; allowed: upwards{}", name,
                                              text_of_number(from), text_of_number(to),
                                              factor ? " and, with a factor, from above 0" : "")});
    return values;
  }
  for (double value = from; value <= to && values.size() <= most_values;
       value = step ? value + *step : value * *factor) {
    YamlNode scalar{.kind = YamlNode::Kind::scalar, .place = node.place, .text_place = node.place};
    scalar.text = text_of_number(value);
    values.push_back(std::move(scalar));
  }
  return values;
}

/// Values in one form; `canonical` returns nothing after adding an error.
template <typename Canonical>
Axis read_axis(const YamlNode& key, const YamlNode& node, const std::string& name,
               const Canonical& canonical, std::vector<StudyError>& errors) {
  Axis axis{.name = name, .values = {}, .place = key.place};
  for (const YamlNode& value : values_of(node, name, errors)) {
    const std::optional<std::string> text = canonical(value);
    if (!text) continue;
    if (std::ranges::find(axis.values, *text) != axis.values.end()) {
      errors.push_back(
          {value.place, fmt::format("'{}' has the value {} twice", name, printable(*text))});
    }
    axis.values.push_back(*text);
  }
  if (axis.values.size() > most_values) {
    errors.push_back({node.place, fmt::format("'{}' has more than {} values", name, most_values)});
    axis.values.clear();
  }
  return axis;
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
std::optional<std::string> problem_expression(const YamlNode& value, const YamlNode& map,
                                              const std::string& field,
                                              std::vector<StudyError>& errors) {
  static const Vocabulary vocabulary = problem_vocabulary();
  const auto read = read_expression(value, vocabulary, Scope::values, false, errors);
  if (!read) return std::nullopt;
  for (const std::string& name : names_in(*read->expression)) {
    const YamlNode* other = value_of_key(map, name);
    const bool is_computed =
        other != nullptr && other->kind != YamlNode::Kind::map &&
        (other->kind == YamlNode::Kind::list ? std::ranges::any_of(other->items, is_expression)
                                             : is_expression(*other));
    if (name == field || is_computed) {
      errors.push_back(
          {value.place,
           fmt::format("'problem.{}' is computed from {}, which is computed itself", field, name)});
      return std::nullopt;
    }
    if (other == nullptr) {
      errors.push_back(
          {value.place,
           fmt::format("'problem.{}' is computed from {}, which is not given", field, name)});
      return std::nullopt;
    }
  }
  return value.text;
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

std::vector<Grid> read_problem(const YamlNode& node, std::vector<StudyError>& errors) {
  std::vector<Grid> grids;
  for (const YamlNode* map : maps_of(node)) {
    check_problem(*map, errors);
    Grid& grid = grids.emplace_back();
    for (std::size_t i = 0; i < map->keys.size(); ++i) {
      const ProblemAxis& axis = *find_problem_axis(map->keys[i].text);
      const auto canonical = [&](const YamlNode& value) -> std::optional<std::string> {
        if (axis.is_choice()) return value.text;
        if (const auto number = number_of(value.text)) return text_of_number(*number);
        return problem_expression(value, *map, std::string(axis.name), errors);
      };
      grid.push_back(read_axis(map->keys[i], map->items[i], fmt::format("problem.{}", axis.name),
                               canonical, errors));
    }
  }
  return grids;
}

std::vector<Grid> read_plan(const YamlNode& node, std::vector<StudyError>& errors) {
  std::vector<Grid> grids;
  for (const YamlNode* map : maps_of(node)) {
    Grid& grid = grids.emplace_back();
    for (std::size_t i = 0; i < map->keys.size(); ++i) {
      const PlanField& field =
          *std::ranges::find(plan_fields(), map->keys[i].text, &PlanField::name);
      const auto canonical = [&](const YamlNode& value) -> std::optional<std::string> {
        const auto number = number_of(value.text);
        if (!number) return value.text;
        if (!field.is_choice()) return text_of_number(*number);
        return std::string(field.values[static_cast<std::size_t>(*number) - 1]);
      };
      Axis axis = read_axis(map->keys[i], map->items[i], fmt::format("plan.{}", field.name),
                            canonical, errors);
      if (axis.values.size() > 1 && std::ranges::find(axis.values, "all") != axis.values.end()) {
        errors.push_back({map->items[i].place,
                          fmt::format("'{}' has all and more; all stands alone", axis.name)});
      }
      grid.push_back(std::move(axis));
    }
  }
  return grids;
}

Grid read_layout(const YamlNode& node, std::vector<StudyError>& errors) {
  Grid grid;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const LayoutAxis& axis = *find_layout_axis(node.keys[i].text);
    const auto canonical = [&](const YamlNode& value) -> std::optional<std::string> {
      return axis.is_choice() ? value.text : text_of_number(number_of(value.text).value_or(0));
    };
    grid.push_back(read_axis(node.keys[i], node.items[i], fmt::format("layout.{}", axis.name),
                             canonical, errors));
  }
  if (!grid.empty() && value_of_key(node, "page_size") == nullptr) {
    errors.push_back({node.keys.front().place,
                      fmt::format("'{}' is given, but no 'layout.page_size'", grid.front().name)});
  }
  return grid;
}

Grid read_inputs(const YamlNode& node, std::vector<StudyError>& errors) {
  std::vector<std::string> families;
  for (const InputFamily& family : all_input_families()) families.push_back(family.name);
  Grid grid;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const bool is_family = node.keys[i].text == "family";
    const auto canonical = [&](const YamlNode& value) -> std::optional<std::string> {
      if (!is_family) return text_of_number(number_of(value.text).value_or(0));
      if (std::ranges::find(families, value.text) != families.end()) return value.text;
      errors.push_back(
          {value.place, fmt::format("input family '{}' is unknown; {}", printable(value.text),
                                    near_or_all(value.text, families))});
      return std::nullopt;
    };
    grid.push_back(
        read_axis(node.keys[i], node.items[i], "inputs." + node.keys[i].text, canonical, errors));
  }
  return grid;
}

}  // namespace attest
