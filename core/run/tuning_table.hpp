#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/tuning_key.hpp"

namespace attest {

/// A race of Plans that was run, and who won.
struct TunedPlan {
  TuningKey key{};
  std::string problem{};  ///< the one that was timed, as text
  std::string plan{};     ///< the winner, as text: a Plan of today may lack a field of the table's
  double time_ms = 0;     ///< median
  double time_low_ms = 0, time_high_ms = 0;  ///< hold the true median with 95 % confidence
  double rate_tflops = 0;                    ///< forward_flops of the problem over the time
  std::string runner_up{};                   ///< empty: no other Plan was left
  double runner_up_ratio = 0;  ///< median over rounds of its time over the winner's; 0: none
  std::int64_t plans = 0;      ///< that were tried
  std::int64_t refused = 0;    ///< Plans that were not timed, because they failed verification
  std::string commit{};        ///< of the program that ran the race
  std::string build{};         ///< compiler and options that made the kernel
  std::string date{};          ///< UTC, ISO 8601

  friend bool operator==(const TunedPlan&, const TunedPlan&) = default;
};

/// Winners, one a key, in the order of the keys.
struct TuningTable {
  std::vector<TunedPlan> rows;

  friend bool operator==(const TuningTable&, const TuningTable&) = default;
};

/// Puts the row in the place of the one with its key, or between its neighbours.
void add_row(TuningTable& table, TunedPlan row);

/// JSON, one row a line.
[[nodiscard]] std::string to_json(const TuningTable& table);
/// Table of a JSON text, inverse of to_json(). Throws InvalidInput with one line that names
/// `where`, row and field: a missing or unknown field, a wrong type, a number that is not finite or
/// negative, two rows of one key, another schema version.
[[nodiscard]] TuningTable tuning_table_from_json(std::string_view text, std::string_view where);

/// The table in a file; an empty one if there is no such file. Throws MachineError if it cannot be
/// read, InvalidInput as above.
[[nodiscard]] TuningTable read_tuning_table(const std::filesystem::path& path);

/// The table that was in the repository when this program was built. One that cannot be read counts
/// as empty, with a line on stderr: it may cost speed, not the run.
[[nodiscard]] const TuningTable& embedded_tuning_table();

}  // namespace attest
