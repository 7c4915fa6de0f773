#include "core/records/record.hpp"

#include <fmt/core.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/records/case_json.hpp"

namespace attest {
namespace {

Json to_json(const Provenance& p) {
  return {{"commit", p.commit},
          {"dirty", p.dirty},
          {"compiler", p.compiler},
          {"cuda_compiler", p.cuda_compiler},
          {"build_type", p.build_type},
          {"sanitizers", p.sanitizers},
          {"host", p.host},
          {"device", p.device},
          {"date", p.date}};
}

Provenance provenance_from_json(const Json& json, const std::string& where) {
  JsonObject reader(json, where);
  Provenance p{.commit = reader.text("commit"),
               .dirty = reader.boolean("dirty"),
               .compiler = reader.text("compiler"),
               .cuda_compiler = reader.text("cuda_compiler"),
               .build_type = reader.text("build_type"),
               .sanitizers = reader.text("sanitizers"),
               .host = reader.text("host"),
               .device = reader.text("device"),
               .date = reader.text("date")};
  reader.finish();
  return p;
}

std::vector<Measurement> measurements_from_json(const Json& json, const std::string& where) {
  if (!json.is_array())
    throw InvalidInput(fmt::format("{}: must be an array, but is {}", where, json.dump()));
  std::vector<Measurement> measurements;
  for (const Json& element : json) {
    JsonObject reader(element, fmt::format("{}[{}]", where, measurements.size()));
    measurements.push_back({.name = reader.text("name"),
                            .value = reader.number("value"),
                            .unit = reader.text("unit")});
    reader.finish();
  }
  return measurements;
}

std::map<std::string, std::string> labels_from_json(const Json& json, const std::string& where) {
  JsonObject reader(json, where);
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : json.items()) labels[key] = reader.text(key);
  return labels;
}

}  // namespace

std::string to_json(const Record& record) {
  Json measurements = Json::array();
  for (const Measurement& m : record.measurements)
    measurements.push_back({{"name", m.name}, {"value", number_json(m.value)}, {"unit", m.unit}});
  Json json;
  json["schema"] = record_schema_version;
  json["kind"] = record.kind;
  json["case"] = record.subject ? case_json(*record.subject) : Json(nullptr);
  json["verdict"] = record.verdict;
  json["labels"] = Json(record.labels);
  json["measurements"] = std::move(measurements);
  json["provenance"] = to_json(record.provenance);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Record record_from_json(std::string_view line, std::string_view where) {
  const Json json = read_json(line, where, "a record");
  const std::string at(where);
  JsonObject reader(json, at);
  // The version comes first: with another one the other keys may well differ, and that is not the
  // news.
  const Json& schema = reader.at("schema");
  if (schema != record_schema_version)
    throw InvalidInput(fmt::format("{}: schema version {}, but this program reads version {}", at,
                                   schema.dump(), record_schema_version));
  Record record;
  record.kind = reader.text("kind");
  if (const Json& subject = reader.at("case"); !subject.is_null())
    record.subject = case_from(subject, at + ": case");
  record.verdict = reader.text("verdict");
  record.labels = labels_from_json(reader.at("labels"), at + ": labels");
  record.measurements = measurements_from_json(reader.at("measurements"), at + ": measurements");
  record.provenance = provenance_from_json(reader.at("provenance"), at + ": provenance");
  reader.finish();
  return record;
}

RecordFile read_records(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  // A folder opens but does not read.
  if (!file || std::filesystem::is_directory(path))
    throw MachineError(fmt::format("{}: cannot be read", path.string()));
  content << file.rdbuf();
  RecordFile result;
  std::int64_t number = 0;
  for (std::string line; std::getline(content, line);) {
    ++number;
    if (line.empty()) continue;
    const bool is_unfinished = content.eof();  // no newline after it
    if (is_unfinished && !is_json(line)) {
      result.truncated = fmt::format("{}:{}: the last record is cut short after {} bytes",
                                     path.string(), number, line.size());
      break;
    }
    result.records.push_back(record_from_json(line, fmt::format("{}:{}", path.string(), number)));
  }
  return result;
}

}  // namespace attest
