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
#include "core/base/json_limits.hpp"
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

/// Reads the fields of one object and complains with its name.
struct RowReader {
  const Json& object;
  std::string where;
  std::size_t used = 0;

  [[noreturn]] void reject(std::string_view field, std::string_view allowed,
                           const Json& got) const {
    throw InvalidInput(
        fmt::format("{}: field '{}' is {}; allowed: {}", where, field,
                    printable(got.dump(-1, ' ', false, Json::error_handler_t::replace)), allowed));
  }
  const Json& get(std::string_view field) {
    const auto found = object.find(field);
    if (found == object.end()) {
      throw InvalidInput(fmt::format("{}: field '{}' is missing", where, field));
    }
    ++used;
    return *found;
  }
  void operator()(std::string_view field, std::string& text) {
    const Json& value = get(field);
    if (!value.is_string()) reject(field, "text", value);
    text = value.get<std::string>();
  }
  void operator()(std::string_view field, bool& flag) {
    const Json& value = get(field);
    if (!value.is_boolean()) reject(field, "true, false", value);
    flag = value.get<bool>();
  }
  void operator()(std::string_view field, std::int64_t& size) {
    constexpr std::int64_t largest = std::int64_t{1} << 60;
    const Json& value = get(field);
    if (!value.is_number_integer() || value < -1 || value > largest) {
      reject(field, "a whole number from -1", value);
    }
    size = value.get<std::int64_t>();
  }
  void operator()(std::string_view field, double& number) {
    const Json& value = get(field);
    if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>())) {
      reject(field, "a number from 0", value);
    }
    number = value.get<double>();
  }
  /// Call last.
  void finish(const TunedPlan& row) const {
    if (used == object.size()) return;
    for (const auto& item : object.items()) {
      const std::string& name = item.key();
      bool is_known = false;
      for_each_field(row, [&](std::string_view field, const auto&) { is_known |= name == field; });
      if (!is_known) {
        throw InvalidInput(fmt::format("{}: field '{}' is unknown", where, printable(name)));
      }
    }
  }
};

TunedPlan row_from(const Json& json, const std::string& where) {
  if (!json.is_object()) throw InvalidInput(fmt::format("{}: must be an object", where));
  TunedPlan row{.key = tuning_key("", {}, "")};  // which parts a key has, and of what type
  RowReader reader{json, where};
  for_each_field(row, [&](std::string_view field, auto& member) { reader(field, member); });
  reader.finish(row);
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
  require_shallow_json(text, where);
  require_distinct_keys(text, where);
  Json json;
  try {
    json = parse_json(text);
  } catch (const Json::exception&) {
    throw InvalidInput(fmt::format("{}: not JSON", where));
  }
  if (!json.is_object() || json.size() != 2 || !json.contains("schema") || !json.contains("rows") ||
      !json["rows"].is_array()) {
    throw InvalidInput(fmt::format(
        "{}: is no table of tuned Plans; allowed: an object with 'schema' and a list 'rows'",
        where));
  }
  if (json["schema"] != schema_version) {
    throw InvalidInput(fmt::format("{}: field 'schema' is {}; this program reads {}", where,
                                   printable(json["schema"].dump(-1, ' ', true)), schema_version));
  }
  TuningTable table;
  for (const Json& element : json["rows"]) {
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
