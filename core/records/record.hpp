#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/records/case.hpp"
#include "core/records/measurement.hpp"
#include "core/records/provenance.hpp"

namespace attest {

/// Raised when a reader of older records would misunderstand newer ones. Readers refuse any other
/// number.
inline constexpr int record_schema_version = 1;

/// One result. A record file holds one JSON object a line (JSONL); everything downstream reads
/// records and recomputes nothing.
struct Record {
  std::string kind{};             ///< which job made it: `verify`, `study`, ...
  std::optional<Case> subject{};  ///< what ran; nothing for a result about many cases
  std::string verdict{};          ///< name of a Verdict; empty when nothing was judged
  /// Words that are not numbers: law, executor, replay line.
  std::map<std::string, std::string> labels{};
  std::vector<Measurement> measurements{};
  Provenance provenance{};
};

/// One line without the newline. NaN and infinities, which JSON has no numbers for, become the
/// strings "nan", "inf" and "-inf"; every other double reads back as the same bits. Bytes that are
/// not UTF-8 are replaced.
[[nodiscard]] std::string to_json(const Record& record);
/// Record of a line, inverse of to_json(). Strict: an unknown key, a missing key, a wrong type or
/// another schema version throws InvalidInput that names `where` and the key.
[[nodiscard]] Record record_from_json(std::string_view line, std::string_view where);

struct RecordFile {
  std::vector<Record> records;
  /// A sentence when the last line was cut short (a killed writer); the records before it are
  /// whole.
  std::optional<std::string> truncated;
};

/// Reads a record file; empty lines are skipped. Anything else that is not a record throws
/// InvalidInput naming file:line; a file that cannot be read throws MachineError.
[[nodiscard]] RecordFile read_records(const std::filesystem::path& path);

/// Appends records to a file that it holds alone: a second writer on the same file throws
/// MachineError. Each record is one write of a whole line, so a killed run loses at most the last
/// one. Safe to share between threads.
class RecordWriter {
 public:
  /// Creates missing parent folders. A half-written last record of a killed run is removed; a file
  /// that ends in anything else unfinished throws InvalidInput and stays as it is. The data reaches
  /// the disk (fsync) after every `sync_every` records and on close.
  explicit RecordWriter(std::filesystem::path path, std::int64_t sync_every = 64);
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  /// Closes; a failure is logged to stderr. Call close() to have it thrown.
  ~RecordWriter();

  /// Appends a record. Throws MachineError with the path and the reason (a full disk).
  void write(const Record& record);
  void close();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void sync();

  std::mutex mutex_;
  std::filesystem::path path_;
  std::int64_t sync_every_;
  std::int64_t unsynced_ = 0;
  int file_ = -1;
};

}  // namespace attest
