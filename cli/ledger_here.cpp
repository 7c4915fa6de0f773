#include "cli/ledger_here.hpp"

#include <string>
#include <system_error>
#include <vector>

namespace attest {

std::optional<std::filesystem::path> find_tree() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const fs::path& start : {fs::read_symlink("/proc/self/exe", ignored), fs::current_path()}) {
    for (fs::path folder = start; folder.has_relative_path(); folder = folder.parent_path()) {
      if (fs::is_regular_file(ledger_folder(folder) / "ids.yaml", ignored)) return folder;
    }
  }
  return std::nullopt;
}

std::filesystem::path ledger_folder(const std::filesystem::path& tree) {
  return tree / "experiments/claims";
}

std::vector<std::string> ids_of(const Ledger& ledger) {
  std::vector<std::string> ids;
  for (const LedgerRow& row : ledger.rows) {
    ids.push_back(row.id);
    ids.emplace_back(base_id(row.id));
  }
  return ids;
}

}  // namespace attest
