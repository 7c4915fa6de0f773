#include "core/records/case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <span>
#include <variant>
#include <vector>

#include "core/attention/problem_field.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/json_limits.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

Json problem_json(const Problem& problem) {
  Json json;
  for (const bool is_required : {true, false}) {
    for (const ProblemField& field : problem_fields()) {
      if (field.is_required() != is_required) continue;
      if (!is_required && has_default(field, problem)) continue;
      std::visit([&](const auto& value) { json[field.name] = value; }, value_of(field, problem));
    }
  }
  return json;
}

Json layout_json(const TensorLayout& layout) {
  return {{"order", name_of(layout.order)},    {"row_gap", layout.row_gap},
          {"base_offset", layout.base_offset}, {"plane_gap", layout.plane_gap},
          {"outer_gap", layout.outer_gap},     {"lone_stride", layout.lone_stride}};
}

Json layouts_json(const Case& c) {
  Json json = Json::object();
  for_each_tensor(*c.problem.operation, [&](const TensorSpec& tensor, auto index) {
    if (tensor.is_strided) json[tensor.name] = layout_json(c.layouts[index]);
  });
  return json;
}

/// One JSON object with every access checked; `path` names it in messages.
class Object {
 public:
  Object(const Json& json, std::string path, std::string_view where,
         std::span<const std::string_view> keys)
      : json_(json), path_(std::move(path)), where_(where) {
    if (!json.is_object()) fail(path_, "an object", json);
    for (const auto& [key, value] : json.items()) {
      if (std::ranges::find(keys, key) == keys.end()) {
        throw InvalidInput(fmt::format("{}: key '{}' is unknown in {}; allowed: {}", where_,
                                       printable(key), path_, fmt::join(keys, ", ")));
      }
    }
  }

  Object(const Json& json, std::string path, std::string_view where,
         std::initializer_list<std::string_view> keys)
      : Object(json, std::move(path), where, std::span(keys.begin(), keys.size())) {}

  [[nodiscard]] const Json& at(const std::string& key) const {
    if (!json_.contains(key)) {
      throw InvalidInput(fmt::format("{}: key '{}' is missing in {}", where_, key, path_));
    }
    return json_.at(key);
  }
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t low,
                                     std::int64_t high) const {
    const Json& value = at(key);
    if (!value.is_number_integer() || value.get<std::int64_t>() < low ||
        value.get<std::int64_t>() > high) {
      fail(key, fmt::format("an integer from {} to {}", low, high), value);
    }
    return value.get<std::int64_t>();
  }
  [[nodiscard]] std::uint64_t seed(const std::string& key) const {
    const Json& value = at(key);
    if (!value.is_number_unsigned()) fail(key, "an integer from 0 to 2^64 - 1", value);
    return value.get<std::uint64_t>();
  }
  [[nodiscard]] double number(const std::string& key) const {
    const Json& value = at(key);
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      fail(key, "a finite number", value);
    }
    return value.get<double>();
  }
  [[nodiscard]] const std::string& text(const std::string& key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(key, "a string", value);
    return value.get_ref<const std::string&>();
  }
  /// 1 for the first of the names, and so on.
  [[nodiscard]] std::int64_t choice(const std::string& key,
                                    std::span<const std::string_view> names) const {
    const auto found = std::ranges::find(names, text(key));
    if (found == names.end()) fail(key, fmt::format("{}", fmt::join(names, ", ")), at(key));
    return found - names.begin() + 1;
  }
  [[nodiscard]] bool boolean(const std::string& key) const {
    const Json& value = at(key);
    if (!value.is_boolean()) fail(key, "true or false", value);
    return value.get<bool>();
  }

 private:
  [[noreturn]] void fail(const std::string& key, std::string_view allowed, const Json& got) const {
    throw InvalidInput(fmt::format("{}: '{}' is {}; allowed: {}", where_, key,
                                   printable(got.dump(-1, ' ', true)), allowed));
  }

  const Json& json_;
  std::string path_;
  std::string_view where_;
};

/// Puts the file's name before a message that does not know it.
template <typename Call>
auto with_place(std::string_view where, const Call& call) {
  try {
    return call();
  } catch (const InvalidInput& error) {
    const std::string_view message = error.what();
    if (message.starts_with(where)) throw;
    throw InvalidInput(fmt::format("{}: {}", where, printable(message, 400)));
  }
}

TensorLayout layout_from(const Json& json, const std::string& path, std::string_view where) {
  const Object object(json, path, where,
                      {"order", "row_gap", "base_offset", "plane_gap", "outer_gap", "lone_stride"});
  constexpr std::int64_t near = 1 << 20;
  constexpr std::int64_t far = std::int64_t{1} << 34;
  return {.order = with_place(where, [&] { return dim_order_from_name(object.text("order")); }),
          .row_gap = object.integer("row_gap", 0, near),
          .base_offset = object.integer("base_offset", 0, near),
          .plane_gap = object.integer("plane_gap", 0, near),
          .outer_gap = object.integer("outer_gap", 0, far),
          .lone_stride = object.integer("lone_stride", 0, far)};
}

Layouts layouts_from(const Json& json, const Operation& operation, std::string_view where) {
  std::vector<std::string_view> names;
  for (const TensorSpec& tensor : operation.tensors) {
    if (tensor.is_strided) names.push_back(tensor.name);
  }
  const Object object(json, "layouts", where, names);
  Layouts layouts;
  for_each_tensor(operation, [&](const TensorSpec& tensor, auto index) {
    if (!tensor.is_strided) return;
    const std::string name(tensor.name);
    layouts[index] = layout_from(object.at(name), "layouts." + name, where);
  });
  return layouts;
}

FieldValue value_from(const Object& object, const ProblemField& field, const std::string& key) {
  constexpr std::int64_t any = std::int64_t{1} << 40;  // validate() knows the real limits
  switch (field.kind()) {
    case FieldKind::size:
      return object.integer(key, std::min<std::int64_t>(0, std::llround(field.low)), any);
    case FieldKind::seed:
      return object.seed(key);
    case FieldKind::real:
      return static_cast<float>(object.number(key));
    case FieldKind::choice:
      break;
  }
  return object.text(key);
}

Problem problem_from(const Json& json, std::string_view where) {
  std::vector<std::string_view> names;
  for (const ProblemField& field : problem_fields()) names.push_back(field.name);
  const Object object(json, "problem", where, names);
  Problem problem;
  for (const ProblemField& field : problem_fields()) {
    const std::string key(field.name);
    if (!field.is_required() && !json.contains(key)) continue;
    const FieldValue value = value_from(object, field, key);
    with_place(where, [&] { set_value(field, problem, value); });
  }
  with_place(where, [&] { validate(problem); });
  return problem;
}

Plan plan_from(const Json& json, std::string_view where) {
  std::vector<std::string_view> names;
  for (const PlanField& field : plan_fields()) names.push_back(field.name);
  const Object object(json, "plan", where, names);
  Plan plan;
  for (const PlanField& field : plan_fields()) {
    const std::string name(field.name);
    if (!json.contains(name)) continue;
    plan.*field.member =
        field.is_choice() ? object.choice(name, field.values) : object.integer(name, 0, 1 << 20);
  }
  return plan;
}

InputSpec inputs_from(const Json& json, std::string_view where) {
  const Object object(json, "inputs", where, {"family", "seed", "magnitude", "round_to_integers"});
  return {.family = object.text("family"),
          .seed = object.seed("seed"),
          .magnitude = object.number("magnitude"),
          .round_to_integers = object.boolean("round_to_integers")};
}

}  // namespace

std::string to_string(const Case& c) {
  return fmt::format("{} | {} | {} | {} | {} x{}{} seed {}", c.kernel, to_string(c.problem),
                     to_string(c.plan), to_string(c.layouts, *c.problem.operation), c.inputs.family,
                     c.inputs.magnitude, c.inputs.round_to_integers ? " integers" : "",
                     c.inputs.seed);
}

std::string file_key(const Case& c) {
  std::string key = fmt::format("{}_{}_{}_{}_{}", c.kernel, to_string(c.problem), to_string(c.plan),
                                c.inputs.family, c.inputs.seed);
  for (char& letter : key) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '.') letter = '_';
  }
  return key;
}

std::string to_json(const Case& c) {
  Json plan = Json::object();
  for (const PlanField& field : plan_fields()) {
    const std::int64_t value = c.plan.*field.member;
    if (value == 0) continue;
    if (field.is_choice()) {
      plan[field.name] = field.values[static_cast<std::size_t>(value - 1)];
    } else {
      plan[field.name] = value;
    }
  }
  const Json json = {{"kernel", c.kernel},
                     {"problem", problem_json(c.problem)},
                     {"plan", plan},
                     {"layouts", layouts_json(c)},
                     {"inputs",
                      {{"family", c.inputs.family},
                       {"seed", c.inputs.seed},
                       {"magnitude", c.inputs.magnitude},
                       {"round_to_integers", c.inputs.round_to_integers}}},
                     {"schedule_seed", c.schedule_seed}};
  return json.dump(2);
}

Case case_from_json(std::string_view text, std::string_view where) {
  Json json;
  require_shallow_json(text, where);
  require_distinct_keys(text, where);
  try {
    json = parse_json(text);
  } catch (const Json::parse_error& error) {
    throw InvalidInput(fmt::format("{}: not JSON at byte {}; a case written by attest is expected",
                                   where, error.byte));
  } catch (const Json::exception&) {
    throw InvalidInput(fmt::format("{}: it holds a number that is too large for a double", where));
  }
  const Object object(json, "the case", where,
                      {"kernel", "problem", "plan", "layouts", "inputs", "schedule_seed"});
  const std::string kernel = object.text("kernel");
  const Problem problem = problem_from(object.at("problem"), where);
  return {.kernel = kernel,
          .problem = problem,
          .plan = plan_from(object.at("plan"), where),
          .layouts = layouts_from(object.at("layouts"), *problem.operation, where),
          .inputs = inputs_from(object.at("inputs"), where),
          .schedule_seed = object.seed("schedule_seed")};
}

}  // namespace attest
