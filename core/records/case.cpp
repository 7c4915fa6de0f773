#include "core/records/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <variant>
#include <vector>

#include "core/attention/problem_field.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/records/case_json.hpp"

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
  if (c.layouts.paging.is_used()) json["paging"] = to_string(c.layouts.paging);
  return json;
}

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

TensorLayout layout_from(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  constexpr std::int64_t near = 1 << 20;
  constexpr std::int64_t far = std::int64_t{1} << 34;
  const TensorLayout layout{
      .order = with_place(where, [&] { return dim_order_from_name(object.text("order")); }),
      .row_gap = object.integer("row_gap", 0, near),
      .base_offset = object.integer("base_offset", 0, near),
      .plane_gap = object.integer("plane_gap", 0, near),
      .outer_gap = object.integer("outer_gap", 0, far),
      .lone_stride = object.integer("lone_stride", 0, far)};
  object.finish();
  return layout;
}

Layouts layouts_from(const Json& json, const Operation& operation, const std::string& where) {
  JsonObject object(json, where);
  Layouts layouts;
  for_each_tensor(operation, [&](const TensorSpec& tensor, auto index) {
    if (!tensor.is_strided) return;
    layouts[index] = layout_from(object.at(tensor.name), fmt::format("{}.{}", where, tensor.name));
  });
  if (object.has("paging")) {
    with_place(where, [&] { layouts.paging = paging_from_string(object.text("paging")); });
  }
  object.finish();
  return layouts;
}

FieldValue value_from(JsonObject& object, const ProblemField& field) {
  constexpr std::int64_t any = std::int64_t{1} << 40;  // validate() knows the real limits
  switch (field.kind()) {
    case FieldKind::size:
      return object.integer(field.name, std::min<std::int64_t>(0, std::llround(field.low)), any);
    case FieldKind::seed:
      return object.seed(field.name);
    case FieldKind::real:
      return static_cast<float>(object.finite(field.name));
    case FieldKind::choice:
      break;
  }
  return object.text(field.name);
}

Problem problem_from(const Json& json, std::string_view where) {
  JsonObject object(json, fmt::format("{}: problem", where));
  Problem problem;
  for (const ProblemField& field : problem_fields()) {
    if (!object.has(field.name) && !field.is_required()) continue;
    const FieldValue value = value_from(object, field);
    with_place(where, [&] { set_value(field, problem, value); });
  }
  object.finish();
  with_place(where, [&] { validate(problem); });
  return problem;
}

Plan plan_from(const Json& json, std::string_view where) {
  JsonObject object(json, fmt::format("{}: plan", where));
  Plan plan;
  for (const PlanField& field : plan_fields()) {
    if (!object.has(field.name)) continue;
    plan.*field.member =
        field.is_choice() ? static_cast<std::int64_t>(object.choice(field.name, field.values)) + 1
                          : object.integer(field.name, 0, 1 << 20);
  }
  object.finish();
  return plan;
}

InputSpec inputs_from(const Json& json, std::string_view where) {
  JsonObject object(json, fmt::format("{}: inputs", where));
  const InputSpec inputs{.family = object.text("family"),
                         .seed = object.seed("seed"),
                         .magnitude = object.finite("magnitude"),
                         .round_to_integers = object.boolean("round_to_integers")};
  object.finish();
  return inputs;
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

Json case_json(const Case& c) {
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
  return {{"kernel", c.kernel},
          {"problem", problem_json(c.problem)},
          {"plan", plan},
          {"layouts", layouts_json(c)},
          {"inputs",
           {{"family", c.inputs.family},
            {"seed", c.inputs.seed},
            {"magnitude", c.inputs.magnitude},
            {"round_to_integers", c.inputs.round_to_integers}}},
          {"schedule_seed", c.schedule_seed}};
}

Case case_from(const Json& json, std::string_view where) {
  JsonObject object(json, std::string(where));
  Case c{.kernel = object.text("kernel"),
         .problem = problem_from(object.at("problem"), where),
         .plan = plan_from(object.at("plan"), where),
         .layouts = {},
         .inputs = inputs_from(object.at("inputs"), where),
         .schedule_seed = object.seed("schedule_seed")};
  c.layouts =
      layouts_from(object.at("layouts"), *c.problem.operation, fmt::format("{}: layouts", where));
  object.finish();
  with_place(where, [&] { validate(c.layouts.paging, c.problem); });
  return c;
}

std::string to_json(const Case& c) {
  return case_json(c).dump(2);
}

Case case_from_json(std::string_view text, std::string_view where) {
  return case_from(read_json(text, where, "a case written by attest"), where);
}

}  // namespace attest
