#include "core/run/tuning_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr int schema_version = 1;

/// Calls field(name, member) for every field of a row, in the order of the file.
template <typename Row, typename Visit>
void for_each_field(Row& row, const Visit& field) {
  field("kernel", row.key.kernel);
  field("gpu", row.key.gpu);
  for (auto& part : row.key.problem) {
    std::visit([&](auto& value) { field(part.name, value); }, part.value);
  }
  field("plan", row.plan);
  field("time_ms", row.time_ms);
  field("time_low_ms", row.time_low_ms);
  field("time_high_ms", row.time_high_ms);
  field("rate_tflops", row.rate_tflops);
  field("runner_up", row.runner_up);
  field("runner_up_ratio", row.runner_up_ratio);
  field("plans", row.plans);
  field("refused", row.refused);
  field("problem", row.problem);
  field("commit", row.commit);
  field("build", row.build);
  field("date", row.date);
}

void read(JsonObject& row, std::string_view field, std::string& text) {
  text = row.text(field);
}
void read(JsonObject& row, std::string_view field, bool& flag) {
  flag = row.boolean(field);
}
void read(JsonObject& row, std::string_view field, std::int64_t& size) {
  size = row.integer(field, -1, std::int64_t{1} << 60);
}
void read(JsonObject& row, std::string_view field, double& number) {
  number = row.finite(field);
  if (number < 0) row.reject(field, "a number from 0");
}

TunedPlan row_from(const Json& json, const std::string& where) {
  TunedPlan row{.key = tuning_key("", {}, "")};  // which parts a key has, and of what type
  JsonObject object(json, where);
  for_each_field(row, [&](std::string_view field, auto& member) { read(object, field, member); });
  object.finish();
  return row;
}

auto place_of(std::vector<TunedPlan>& rows, const TuningKey& key) {
  return std::ranges::lower_bound(rows, key, {}, &TunedPlan::key);
}

}  // namespace

void add_row(TuningTable& table, TunedPlan row) {
  const auto place = place_of(table.rows, row.key);
  if (place != table.rows.end() && place->key == row.key) {
    *place = std::move(row);
  } else {
    table.rows.insert(place, std::move(row));
  }
}

std::string to_json(const TuningTable& table) {
  std::string text = fmt::format("{{\"schema\": {}, \"rows\": [", schema_version);
  std::string_view separator = "\n";
  for (const TunedPlan& row : table.rows) {
    Json json;
    for_each_field(row, [&](std::string_view field, const auto& member) { json[field] = member; });
    text += separator;
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

TuningTable tuning_table_from_json(std::string_view text, std::string_view where) {
  const Json json = read_json(text, where, "a table of tuned Plans");
  JsonObject object(json, std::string(where));
  if (const Json& schema = object.at("schema"); schema != schema_version) {
    object.reject("schema", fmt::format("{}, which this program reads", schema_version));
  }
  const Json& rows = object.at("rows");
  if (!rows.is_array()) object.reject("rows", "a list");
  object.finish();
  TuningTable table;
  for (const Json& element : rows) {
    const std::size_t number = table.rows.size() + 1;
    const std::string row_at = fmt::format("{}: row {}", where, number);
    TunedPlan row = row_from(element, row_at);
    add_row(table, std::move(row));
    if (table.rows.size() != number) {
      throw InvalidInput(fmt::format("{}: has the key of an earlier row", row_at));
    }
  }
  return table;
}

TuningTable read_tuning_table(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be looked at does not open either
  if (!std::filesystem::exists(path, ignored)) return {};
  std::ifstream file(path, std::ios::binary);
  // A folder opens but does not read.
  if (!file || std::filesystem::is_directory(path, ignored)) {
    throw MachineError(fmt::format("{}: cannot be read", path.string()));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return tuning_table_from_json(text, path.string());
}

}  // namespace attest
