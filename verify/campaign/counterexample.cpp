#include "verify/campaign/counterexample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/text_file.hpp"
#include "core/records/case_json.hpp"
#include "core/run/registry.hpp"
#include "verify/workers/worker_protocol.hpp"

namespace attest {
namespace {

/// The value that the text of the key names.
template <typename Value, std::size_t count>
Value one_of(JsonObject& object, std::string_view key, const std::array<Value, count>& values) {
  std::array<std::string_view, count> names;
  std::ranges::transform(values, names.begin(), [](Value value) { return name_of(value); });
  return values[object.choice(key, names)];
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
                     {"case", case_json(failure.the_case)}};
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
  constexpr std::array executors{Executor::cpu, Executor::simt, Executor::gpu};
  constexpr std::array verdicts{Verdict::failed, Verdict::crashed, Verdict::timed_out};
  const Json json = read_json(text, where, "a counterexample");
  JsonObject object(json, where);
  Counterexample read{.law = object.text("law"),
                      .executor = one_of(object, "executor", executors),
                      .inputs_file = object.text("inputs_file"),
                      .the_case = case_from(object.at("case"), where + ": case")};
  if (object.has("verdict")) read.kind = one_of(object, "verdict", verdicts);
  if (object.has("plugin")) read.plugin = object.text("plugin");
  static_cast<void>(object.has("evidence"));  // for a human reader
  object.finish();
  return read;
}

}  // namespace attest
