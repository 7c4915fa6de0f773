#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "experiments/study/language/schema.hpp"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;
/// Alternatives of alternatives are alternatives.
Json any_of(const std::vector<Json>& schemas) {
  if (schemas.size() == 1) return schemas.front();
  Json alternatives = Json::array();
  for (const Json& schema : schemas) {
    if (schema.size() == 1 && schema.contains("anyOf")) {
      for (const Json& inner : schema["anyOf"]) alternatives.push_back(inner);
    } else {
      alternatives.push_back(schema);
    }
  }
  return {{"anyOf", std::move(alternatives)}};
}

/// A part that stands once in the schema.
Json reference_to(const std::string& name) {
  return {{"$ref", "#/definitions/" + name}};
}

Json json_number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p62)
    return static_cast<std::int64_t>(value);
  return value;
}

Json schema_of(const Form& form) {
  std::vector<Json> schemas;
  std::vector<Json> words(form.choices.begin(), form.choices.end());
  switch (form.kind) {
    case Form::Kind::text:
    case Form::Kind::expression:
      schemas.push_back(reference_to("text"));
      break;
    case Form::Kind::word:
      schemas.push_back({{"type", "string"}, {"pattern", fmt::format("^({})$", form.pattern)}});
      break;
    case Form::Kind::whole:
    case Form::Kind::number:
      schemas.push_back({{"type", form.kind == Form::Kind::whole ? "integer" : "number"},
                         {"minimum", json_number(form.low)},
                         {"maximum", json_number(form.high)}});
      if (form.or_expression) schemas.push_back(reference_to("text"));
      break;
    case Form::Kind::choice:
      // Texts alone: an editor would offer the numbers first.
      if (form.or_number) {
        schemas.push_back({{"type", "integer"}, {"minimum", 1}, {"maximum", words.size() - 1}});
      }
      break;
  }
  if (!words.empty()) schemas.push_back({{"enum", words}});
  return any_of(std::move(schemas));
}

Json schema_of(const std::vector<SpecKey>& keys);

Json list_of(Json items) {
  return {{"type", "array"}, {"minItems", 1}, {"items", std::move(items)}};
}

Json range() {
  const Json number{{"type", "number"}};
  return {{"type", "object"},
          {"required", {"from", "to"}},
          {"additionalProperties", false},
          {"properties", {{"from", number}, {"to", number}, {"step", number}, {"factor", number}}}};
}

Json axes_of(const SpecKey& key) {
  Json properties = Json::object();
  for (const SpecKey& axis : key.keys) {
    const Json value = schema_of(axis.form);
    std::vector<Json> forms{value, list_of(value)};
    const bool is_number =
        axis.form.kind == Form::Kind::whole || axis.form.kind == Form::Kind::number;
    if (is_number) forms.push_back(reference_to("range"));
    properties[axis.name] = any_of(std::move(forms));
    if (!axis.summary.empty()) properties[axis.name]["description"] = axis.summary;
  }
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

Json schema_of(const SpecKey& key) {
  const auto with_words = [&](Json schema) {
    if (key.form.choices.empty()) return schema;
    return any_of({Json{{"enum", key.form.choices}}, std::move(schema)});
  };
  switch (key.shape) {
    case KeyShape::value:
      return schema_of(key.form);
    case KeyShape::list:
      return list_of(schema_of(key.form));
    case KeyShape::one_or_list:
      return any_of({schema_of(key.form), list_of(schema_of(key.form))});
    case KeyShape::keys:
      return with_words(schema_of(key.keys));
    case KeyShape::keys_list:
      return list_of(schema_of(key.keys));
    case KeyShape::axes:
      return axes_of(key);
    case KeyShape::axes_list:
      return with_words(any_of({reference_to(key.name), list_of(reference_to(key.name))}));
  }
  return {};
}

Json schema_of(const std::vector<SpecKey>& keys) {
  Json properties = Json::object(), required = Json::array();
  for (const SpecKey& key : keys) {
    properties[key.name] = schema_of(key);
    if (!key.summary.empty()) properties[key.name]["description"] = key.summary;
    if (key.is_required) required.push_back(key.name);
  }
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", required},
          {"properties", properties}};
}

std::string allowed_of(const SpecKey& key) {
  if (key.shape == KeyShape::axes || key.shape == KeyShape::axes_list ||
      key.shape == KeyShape::keys || key.shape == KeyShape::keys_list) {
    std::vector<std::string> names;
    for (const SpecKey& part : key.keys) names.push_back("`" + part.name + "`");
    return fmt::format("{}{}", key.shape == KeyShape::keys_list ? "list of: " : "",
                       fmt::join(names, ", "));
  }
  const std::string list = key.shape == KeyShape::list ? "list of: " : "";
  if (!key.form.allowed.empty()) return list + key.form.allowed;
  if (key.form.kind == Form::Kind::choice) {
    return fmt::format("{}`{}`", list, fmt::join(key.form.choices, "`, `"));
  }
  return fmt::format("{}a whole number from {:.0f} to {:.0f}", list, key.form.low, key.form.high);
}

/// Appends what people can read and compare: a value to a line where it fits, else a part to a
/// line.
void append_lines(std::string& text, const Json& json, std::size_t indent) {
  constexpr std::size_t width = 150;
  const std::string line = json.dump();
  if (!json.is_structured() || indent + line.size() <= width) {
    text += line;
    return;
  }
  const std::string begin = "\n" + std::string(indent, ' ');
  const char* separator = "";
  text += json.is_object() ? '{' : '[';
  for (const auto& [key, value] : json.items()) {
    text += separator + begin + " ";
    if (json.is_object()) text += Json(key).dump() + ": ";
    append_lines(text, value, indent + 1);
    separator = ",";
  }
  text += begin + (json.is_object() ? '}' : ']');
}

}  // namespace

std::string study_json_schema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "Attest study"}};
  schema.update(schema_of(study_keys()));
  Json& definitions = schema["definitions"];
  definitions["text"] = {{"type", "string"}, {"minLength", 1}};
  definitions["range"] = range();
  for (const SpecKey& key : study_keys()) {
    if (key.shape == KeyShape::axes_list) definitions[key.name] = axes_of(key);
  }
  std::string text;
  append_lines(text, schema, 0);
  return text + "\n";
}

std::string study_key_table() {
  std::string table = "| key | what | allowed |\n| --- | --- | --- |\n";
  for (const SpecKey& key : study_keys()) {
    table += fmt::format("| `{}`{} | {} | {} |\n", key.name, key.is_required ? " (needed)" : "",
                         key.summary, allowed_of(key));
  }
  return table;
}

}  // namespace attest
