#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/failure_report.hpp"
#include "core/base/json.hpp"
#include "core/base/text_file.hpp"
#include "core/records/provenance.hpp"

namespace attest {
namespace {

/// A path as part of a URI (RFC 3986).
std::string uri(const std::string& path) {
  constexpr std::string_view plain = "-._~/:@!$&'()*+,;=";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    out +=
        is_word || plain.find(c) != plain.npos ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return path.starts_with('/') ? "file://" + out : out;
}

/// Rules of the reports, each once.
Json rules_of(const std::vector<FailureReport>& reports) {
  Json rules = Json::array();
  for (const FailureReport& report : reports) {
    const auto is_it = [&](const Json& rule) { return rule.at("id") == report.rule; };
    if (std::any_of(rules.begin(), rules.end(), is_it)) continue;
    rules.push_back({{"id", report.rule},
                     {"name", report.rule},
                     {"shortDescription", {{"text", report.statement}}},
                     {"defaultConfiguration", {{"level", "error"}}}});
  }
  return rules;
}

Json result_of(const FailureReport& report) {
  const Json place = {{"artifactLocation", {{"uri", uri(report.place.file)}}},
                      {"region", {{"startLine", report.place.line}}}};
  const Json location = {{"physicalLocation", place},
                         {"logicalLocations", Json::array({{{"name", report.kernel}}})}};
  return {{"ruleId", report.rule},
          {"level", "error"},
          {"message",
           {{"text", fmt::format("{}: {}\n{}", report.kernel, report.sentence, report.text)}}},
          {"locations", Json::array({location})},
          // The same finding of a later run, wherever its line has moved.
          {"partialFingerprints",
           {{"kernelAndRule/v1", fmt::format("{}: {}", report.kernel, report.rule)}}}};
}

}  // namespace

void write_sarif(const std::string& path, const std::vector<FailureReport>& reports) {
  Json results = Json::array();
  for (const FailureReport& report : reports) results.push_back(result_of(report));
  const Json driver = {
      {"name", "Attest"}, {"version", current_provenance("").commit}, {"rules", rules_of(reports)}};
  const Json run = {{"tool", {{"driver", driver}}}, {"results", results}};
  const Json sarif = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                      {"version", "2.1.0"},
                      {"runs", Json::array({run})}};
  write_whole_file(path, sarif.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace attest
