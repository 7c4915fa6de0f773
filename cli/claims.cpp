#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/base/counted.hpp"
#include "core/base/glob.hpp"
#include "core/inputs/safetensors.hpp"
#include "core/run/registry.hpp"
#include "experiments/claims/formula.hpp"
#include "experiments/claims/ledger.hpp"
#include "experiments/claims/table.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

struct ClaimsOptions {
  std::string ids = "*";
  std::string tree;
  std::string records;
  bool json = false;
  bool markdown = false;
};

fs::path tree_of(const ClaimsOptions& options) {
  if (!options.tree.empty()) return options.tree;
  if (const auto tree = find_tree()) return *tree;
  throw InvalidInput(
      "no ledger (experiments/claims) above the program or the current folder; --tree DIR names "
      "the repository");
}

ExitCode claims(const ClaimsOptions& options) {
  const fs::path tree = tree_of(options);
  const Ledger ledger = read_ledger(ledger_folder(tree));
  std::vector<const LedgerRow*> rows;
  const std::vector<std::string> ids = ids_of(ledger);
  require_matches({"--id", "id of the ledger", "attest claims"}, options.ids, ids);
  for (const LedgerRow& row : ledger.rows) {
    const bool is_wanted =
        matches_glob(row.id, options.ids) || matches_glob(base_id(row.id), options.ids);
    if (is_wanted) rows.push_back(&row);
  }
  const std::vector<Evaluation> found = evaluate(
      rows, options.records.empty() ? tree / "experiments/results" : fs::path(options.records));
  fmt::print("{}", options.json       ? json_lines(found)
                   : options.markdown ? markdown_table(ledger, found)
                                      : text_table(found));
  int checked = 0, without_records = 0;
  std::vector<std::string> regressions;
  for (const Evaluation& evaluation : found) {
    checked += static_cast<int>(evaluation.found.has_value());
    without_records += static_cast<int>(!evaluation.trouble.empty());
    if (evaluation.is_regression()) regressions.push_back(evaluation.row->id);
  }
  if (!options.json && !options.markdown) {
    fmt::print(
        "{}, {} checked{}\n", counted(found.size(), "row"), counted(checked, "verdict"),
        without_records == 0 ? "" : fmt::format(", {} without their records", without_records));
  }
  for (const std::string& id : regressions) {
    fmt::print(stderr, "attest: claim {} no longer has the verdict of the ledger\n", id);
  }
  return regressions.empty() ? ExitCode::passed : ExitCode::verdict_failed;
}

}  // namespace

void add_claims_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "claims", "What the founding documents claimed, our figures, and the verdicts, checked");
  const auto options = std::make_shared<ClaimsOptions>();
  command->add_option("--id", options->ids, "ids to show, such as 'Q3.*,K5'; default: all");
  command->add_option("--tree", options->tree,
                      "the repository, whose experiments/claims is the ledger");
  command->add_option("--records", options->records,
                      "results folder; default: experiments/results of the repository");
  CLI::Option* json = command->add_flag("--json", options->json, "one JSON object a line");
  command->add_flag("--markdown", options->markdown, "as experiments/results/h200/claims.md")
      ->excludes(json);
  command->footer(
      "Exit code 1: a verdict that the figures give is not the one written down.\n"
      "Examples:\n"
      "  attest claims --id 'Q3.*'\n"
      "  attest claims --markdown > experiments/results/h200/claims.md");
  command->callback([options, &action] { action = [options] { return claims(*options); }; });
}

}  // namespace attest
