#pragma once

#include <filesystem>
#include <string>

#include "experiments/claims/ledger.hpp"

namespace attest {

/// A sentence why the thing does not exist; empty when it does: a registered kernel (and, if the
/// pointer names one, a Plan that it offers), law or input family; a mutant, study, record or file
/// of the tree; a test, `FILE: Suite.Name`, whose file has it.
[[nodiscard]] std::string why_nowhere(const Pointer& pointer, const std::filesystem::path& tree);

/// A pointer as a reader may look it up: `k5_padded_tiles`, `CostModelAnswers.MatricesOfScores`.
[[nodiscard]] std::string to_string(const Pointer& pointer);

}  // namespace attest
