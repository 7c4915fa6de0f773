#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/claims/ledger.hpp"

namespace attest {

/// The repository: the nearest folder above the program, or above the current one, with a ledger.
/// Nothing where a program stands alone.
[[nodiscard]] std::optional<std::filesystem::path> find_tree();

/// Where a repository keeps its ledger.
[[nodiscard]] std::filesystem::path ledger_folder(const std::filesystem::path& tree);

/// Ids of the ledger's rows, and those that several rows belong to.
[[nodiscard]] std::vector<std::string> ids_of(const Ledger& ledger);

}  // namespace attest
