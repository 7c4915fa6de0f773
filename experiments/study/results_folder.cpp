#include "experiments/study/results_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/text_file.hpp"

namespace attest {
namespace {

std::optional<std::string> text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

std::string to_json(const RunSettings& settings) {
  Json json{{"name", settings.name},         {"program", settings.program},
            {"executor", settings.executor}, {"device", settings.device},
            {"gpu", settings.gpu},           {"seed", settings.seed},
            {"time_budget_s", nullptr}};
  if (settings.time_budget_s) json["time_budget_s"] = *settings.time_budget_s;
  if (!settings.plugins.empty()) json["plugins"] = settings.plugins;
  return json.dump(1) + "\n";
}

/// Does a process hold the file as RecordWriter does?
bool is_being_written(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_held = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return is_held;
}

/// The first of several writers at a time counts.
void write_if_absent(const std::filesystem::path& path, const std::string& content) {
  if (std::filesystem::exists(path)) return;
  const std::filesystem::path mine = path.string() + fmt::format(".{}", ::getpid());
  write_whole_file(mine, content);
  std::error_code error;
  std::filesystem::create_hard_link(mine, path, error);
  std::filesystem::remove(mine);
  if (error && !std::filesystem::exists(path)) write_whole_file(path, content);  // no links here
}

bool holds_nothing(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::file_size(file, error) == 0 || error;
}

bool is_in_use(const std::filesystem::path& file) {
  return !holds_nothing(file) || is_being_written(file);
}

}  // namespace

bool ResultsFolder::is_of_other_part(const std::filesystem::path& file, const Shard& shard) const {
  const std::string end = fmt::format("-of-{}.jsonl", shard.count);
  return shard.count > 1 && file != records_of(shard) && file.filename().string().ends_with(end);
}

void ResultsFolder::begin(const std::string& study, const RunSettings& settings,
                          const Shard& shard) const {
  const auto refuse = [&](std::string_view what) {
    throw InvalidInput(
        fmt::format("{} {}; allowed: attest study resume {}, or another folder with --out",
                    path_.string(), what, path_.string()));
  };
  std::optional<std::string> there = text_of(path_ / "study.yaml");
  // A run that ended before its first record leaves nothing that could be mixed with.
  const bool is_alone = shard.count == 1 && std::ranges::none_of(record_files(), is_in_use);
  if (is_alone) there.reset();
  if (there && *there != study) refuse("holds the results of another study");
  for (const std::filesystem::path& file : record_files()) {
    if (!holds_nothing(file) && !is_of_other_part(file, shard)) refuse("holds results already");
  }
  if (!there) write_whole_file(path_ / "study.yaml", study);
  if (is_alone) std::filesystem::remove(path_ / "run.json");
  write_if_absent(path_ / "run.json", to_json(settings));
  require_alike(settings);
}

void ResultsFolder::require_alike(const RunSettings& settings) const {
  const RunSettings begun = this->settings();
  const auto gpu = [](const RunSettings& s) { return s.gpu.empty() ? "no GPU" : s.gpu; };
  const auto require = [&](std::string_view what, const auto& was, const auto& is) {
    if (was == is) return;
    throw InvalidInput(
        fmt::format("{}: was begun {} {}, this is {}; allowed: the same, or a new "
                    "folder",
                    path_.string(), what, was, is));
  };
  require("by the program of commit", begun.program, settings.program);
  require("under the name", begun.name, settings.name);
  require("with --executor", begun.executor, settings.executor);
  require("on", gpu(begun), gpu(settings));
  require("with --device", begun.device, settings.device);
  require("with --seed", begun.seed, settings.seed);
}

std::string ResultsFolder::study() const {
  const std::optional<std::string> text = text_of(path_ / "study.yaml");
  if (!text) {
    throw InvalidInput(
        fmt::format("{}: holds no study to resume (no study.yaml in it)", path_.string()));
  }
  return *text;
}

RunSettings ResultsFolder::settings() const {
  const std::filesystem::path file = path_ / "run.json";
  const std::optional<std::string> text = text_of(file);
  if (!text) throw InvalidInput(fmt::format("{}: is missing", file.string()));
  try {
    const Json json = parse_json(*text);
    RunSettings settings{.name = json.at("name"),
                         .program = json.at("program"),
                         .executor = json.at("executor"),
                         .device = json.at("device"),
                         .gpu = json.at("gpu"),
                         .seed = json.at("seed")};
    if (const Json& budget = json.at("time_budget_s"); !budget.is_null()) {
      settings.time_budget_s = budget.get<double>();
    }
    settings.plugins = json.value("plugins", std::vector<std::string>{});
    return settings;
  } catch (const Json::exception& error) {
    throw InvalidInput(
        fmt::format("{}: does not say how a study was begun ({})", file.string(), error.what()));
  }
}

std::filesystem::path ResultsFolder::records_of(const Shard& shard) const {
  if (shard.count == 1) return path_ / "records.jsonl";
  return path_ / fmt::format("records.{}-of-{}.jsonl", shard.index + 1, shard.count);
}

std::vector<std::filesystem::path> ResultsFolder::record_files() const {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("records") && name.ends_with(".jsonl")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<Record> ResultsFolder::records() const {
  std::vector<Record> all;
  for (const std::filesystem::path& file : record_files()) {
    std::ranges::move(read_records(file).records, std::back_inserter(all));
  }
  return all;
}

void ResultsFolder::require_no_other_writer(const Shard& shard) const {
  for (const std::filesystem::path& file : record_files()) {
    if (is_of_other_part(file, shard) || file == records_of(shard)) continue;
    if (is_being_written(file)) {
      throw MachineError(fmt::format("{}: another run is writing to it", file.string()));
    }
  }
}

std::set<std::string> finished_points(const std::vector<Record>& records) {
  std::set<std::string> finished;
  for (const Record& record : records) {
    if (record.kind != "study") continue;
    const auto label = [&](const char* name) {
      const auto found = record.labels.find(name);
      return found == record.labels.end() ? std::string() : found->second;
    };
    if (label("skipped_by") != "budget") finished.insert(label("point"));
  }
  return finished;
}

}  // namespace attest
