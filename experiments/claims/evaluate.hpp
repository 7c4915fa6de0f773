#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/claims/ledger.hpp"

namespace attest {

/// What this machine finds of a row.
struct Evaluation {
  const LedgerRow* row = nullptr;
  std::string ours{};               ///< the row's texts with their figures
  std::string because{};            ///< both empty where there are no records
  std::optional<Standing> found{};  ///< reproduced or refuted; nothing: not asked, or no records
  std::string trouble{};            ///< why there is no figure, such as a record that is not there

  /// The verdict that the figures give is not the one that is written down.
  [[nodiscard]] bool is_regression() const { return found && *found != row->verdict; }
};

/// Evaluates the figures of rows that have any. A record file that is not there is trouble of the
/// row; InvalidInput names the row whose formula is wrong.
[[nodiscard]] std::vector<Evaluation> evaluate(const std::vector<const LedgerRow*>& rows,
                                               const std::filesystem::path& results);

}  // namespace attest
