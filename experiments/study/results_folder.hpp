#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "verify/campaign/campaign.hpp"

namespace attest {

/// Settings with which a study was begun, so that it goes on alike.
struct RunSettings {
  std::string name{};      ///< of the study: its file has another one here
  std::string program{};   ///< commit, and build where the tree had changes
  std::string executor{};  ///< as asked for: auto, gpu, simt, cpu
  std::string device{};    ///< whose models count where there is no GPU: h200
  std::string gpu{};       ///< name of the GPU that runs kernels; empty: none does
  std::uint64_t seed = 1;  ///< of the order
  std::optional<double> time_budget_s{};
  std::vector<std::string> plugins{};  ///< absolute paths
};

/// A folder with the results of one study: study.yaml, run.json, and records*.jsonl, one file a
/// writer.
class ResultsFolder {
 public:
  explicit ResultsFolder(std::filesystem::path path) : path_(std::move(path)) {}

  /// Begins a study here. Throws InvalidInput when the folder holds another one, one begun with
  /// other settings, or records of the shard that is begun. Ranks that begin the same at the same
  /// time do not disturb each other.
  void begin(const std::string& study, const RunSettings& settings, const Shard& shard) const;
  /// Throws InvalidInput naming what differs when the study was begun with other settings than
  /// these, time budget aside: by another seed or on another GPU it has other parts or points.
  void require_alike(const RunSettings& settings) const;
  /// The study's text and how it was begun. Throws InvalidInput when there is none.
  [[nodiscard]] std::string study() const;
  /// Settings in run.json. Throws InvalidInput when there is none, or it is none.
  [[nodiscard]] RunSettings settings() const;

  /// records.jsonl, or of part 2 of 5 records.2-of-5.jsonl.
  [[nodiscard]] std::filesystem::path records_of(const Shard& shard) const;
  /// The records of all writers, a record that is cut short left out.
  [[nodiscard]] std::vector<Record> records() const;
  /// Throws MachineError when a process writes here that is no part of the same `shard.count`:
  /// both would measure the same points.
  void require_no_other_writer(const Shard& shard) const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  /// True if the file is one of another part of the same number of parts, of a process that may
  /// write at the same time.
  [[nodiscard]] bool is_of_other_part(const std::filesystem::path& file, const Shard& shard) const;
  [[nodiscard]] std::vector<std::filesystem::path> record_files() const;

  std::filesystem::path path_;
};

/// Points that need no further work: all that have a record, but for those that the time budget
/// left out.
[[nodiscard]] std::set<std::string> finished_points(const std::vector<Record>& records);

}  // namespace attest
