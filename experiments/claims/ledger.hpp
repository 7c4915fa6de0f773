#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest {
/// A document that the project began with, or that a claim is from.
struct ClaimSource {
  std::string id;       ///< S0
  std::string title;    ///< what it is
  std::string machine;  ///< on which it measured
};

/// Place that embodies something of the ledger: exactly one thing that can be looked up.
struct Pointer {
  /// kernel, test, mutant, property, input, study, record, file
  std::string kind;
  std::string name;
  std::string plan;  ///< of a kernel: words of one of its Plans
};

enum class Standing { reproduced, refuted, not_comparable, open, has_no_verdict };
[[nodiscard]] std::string_view name_of(Standing standing);

/// A row of the ledger: a quantitative claim, or something the documents contain (a system, a
/// defect, an exercise), which has no verdict and is embodied somewhere or open.
struct LedgerRow {
  std::string id{};       ///< Q3.13, Q0.5b, K5, C12
  std::string source{};   ///< S3
  std::string what{};     ///< what was claimed, in our words
  std::string setting{};  ///< shape, type, machine
  /// Named formulas, each over those before it, in order.
  std::vector<std::pair<std::string, std::string>> figures{};
  std::string ours{};   ///< a text with {figures}
  std::string holds{};  ///< formula: the claim as a statement about the figures
  Standing verdict = Standing::has_no_verdict;
  std::string because{};  ///< a text with {figures}: what they say, or why they cannot be compared
  std::string missing{};  ///< what would have to be run or built
  std::vector<Pointer> where{};
  std::string place{};  ///< FILE:LINE
};

struct Ledger {
  std::vector<ClaimSource> sources;
  std::vector<LedgerRow> rows;
  /// {`Q0.`, 14}: the ledger has Q0.1 to Q0.14. Ids with a number of their own: {`KS`, 0}.
  std::vector<std::pair<std::string, int>> series;
};

/// Reads all *.yaml of a folder. InvalidInput: FILE:LINE and what is wrong, for an unknown or
/// missing key, an id twice, a verdict without what it needs; MachineError: cannot be read.
[[nodiscard]] Ledger read_ledger(const std::filesystem::path& folder);

/// The id of the ledger that a row belongs to: Q0.5b and Q0.5 are both of Q0.5.
[[nodiscard]] std::string_view base_id(std::string_view id);
/// Ids of the series without a row, then ids of rows that are in no series.
[[nodiscard]] std::vector<std::string> missing_ids(const Ledger& ledger);
[[nodiscard]] std::vector<std::string> unlisted_ids(const Ledger& ledger);

/// The repository: the nearest folder above the program, or above the current one, with a ledger.
/// Nothing where a program stands alone.
[[nodiscard]] std::optional<std::filesystem::path> find_tree();

/// Folder of the ledger in a repository.
[[nodiscard]] std::filesystem::path ledger_folder(const std::filesystem::path& tree);

/// Ids of the ledger's rows, and those that several rows belong to.
[[nodiscard]] std::vector<std::string> ids_of(const Ledger& ledger);

}  // namespace attest
