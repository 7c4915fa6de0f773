#include "verify/campaign/counterexample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/json_limits.hpp"
#include "core/base/text.hpp"
#include "core/base/text_file.hpp"
#include "core/base/whole_file.hpp"
#include "core/run/registry.hpp"
#include "verify/workers/worker_protocol.hpp"

namespace attest {
namespace {

std::string text_at(const Json& json, const std::string& key, const std::string& where) {
  if (!json.contains(key) || !json.at(key).is_string()) {
    throw InvalidInput(fmt::format("{}: key '{}' must be a string", where, key));
  }
  return json.at(key).get<std::string>();
}

Executor executor_at(const Json& json, const std::string& where) {
  const std::string name = text_at(json, "executor", where);
  if (const auto executor = executor_from_name(name)) return *executor;
  throw InvalidInput(
      fmt::format("{}: 'executor' is '{}'; allowed: cpu, simt, gpu", where, printable(name)));
}

Verdict verdict_from_name(const std::string& name, const std::string& where) {
  for (const Verdict verdict : {Verdict::failed, Verdict::crashed, Verdict::timed_out}) {
    if (name_of(verdict) == name) return verdict;
  }
  throw InvalidInput(fmt::format("{}: 'verdict' is '{}'; allowed: failed, crashed, timed_out",
                                 where, printable(name)));
}

std::string plugin_of(const std::string& kernel, Executor executor) {
  const KernelInfo* info = find_kernel(kernel, executor);
  return info == nullptr ? "" : info->plugin;
}

}  // namespace

std::filesystem::path write_counterexample(const std::filesystem::path& folder,
                                           const Failure& failure, Executor executor,
                                           const std::string& inputs_file) {
  Json evidence = {{"what", failure.check.detail}};
  if (!failure.repetition.empty()) evidence["repetition"] = failure.repetition;
  if (failure.check.has_element) {
    const WorstElement& worst = failure.check.worst;
    evidence["element"] = failure.check.tensor + to_string(worst.index);
    evidence["got"] = number_json(worst.got);
    evidence["want"] = number_json(worst.want);
    evidence["bound"] = number_json(worst.bound);
  }
  const Json json = {{"law", failure.law},
                     {"verdict", name_of(failure.kind)},
                     {"executor", name_of(executor)},
                     {"inputs_file", inputs_file},
                     {"plugin", plugin_of(failure.the_case.kernel, executor)},
                     {"evidence", evidence},
                     {"case", parse_json(to_json(failure.the_case))}};
  const std::filesystem::path path = folder / (file_key(failure.the_case) + ".json");
  write_whole_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return path;
}

Counterexample read_counterexample(const std::filesystem::path& path) {
  const std::string where = path.string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InvalidInput(
        fmt::format("{}: not a file; attest verify writes counterexamples/<key>.json", where));
  }
  constexpr std::size_t most_bytes = 16 << 20;
  return counterexample_from_json(read_text_file(path, most_bytes), where);
}

Counterexample counterexample_from_json(std::string_view text, const std::string& where) {
  require_shallow_json(text, where);
  require_distinct_keys(text, where);
  Json json;
  try {
    json = parse_json(text);
  } catch (const Json::parse_error& parse_error) {
    throw InvalidInput(fmt::format("{}: not JSON at byte {}; a counterexample is expected", where,
                                   parse_error.byte));
  } catch (const Json::exception&) {
    throw InvalidInput(fmt::format("{}: it holds a number that is too large for a double", where));
  }
  constexpr std::array<std::string_view, 7> keys{"law",    "verdict",  "executor", "inputs_file",
                                                 "plugin", "evidence", "case"};
  if (!json.is_object() || !json.contains("case")) {
    throw InvalidInput(
        fmt::format("{}: not a counterexample; expected keys: {}", where, fmt::join(keys, ", ")));
  }
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(keys, key) == keys.end()) {
      throw InvalidInput(fmt::format("{}: key '{}' is unknown; allowed: {}", where, printable(key),
                                     fmt::join(keys, ", ")));
    }
  }
  return {.law = text_at(json, "law", where),
          .executor = executor_at(json, where),
          .inputs_file = text_at(json, "inputs_file", where),
          .the_case = case_from_json(json.at("case").dump(), where),
          .kind = json.contains("verdict")
                      ? verdict_from_name(text_at(json, "verdict", where), where)
                      : Verdict::failed,
          .plugin = json.contains("plugin") ? text_at(json, "plugin", where) : ""};
}

}  // namespace attest
