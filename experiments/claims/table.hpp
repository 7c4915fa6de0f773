#pragma once

#include <string>
#include <vector>

#include "experiments/claims/formula.hpp"

namespace attest {

/// The claims among the rows, and what else they name, as text for a terminal.
[[nodiscard]] std::string text_table(const std::vector<Evaluation>& rows);
/// The whole ledger as a document: experiments/results/h200/claims.md.
[[nodiscard]] std::string markdown_table(const Ledger& ledger, const std::vector<Evaluation>& rows);
/// One object a line: id, source, what, setting, ours, verdict, found, because, missing, where.
[[nodiscard]] std::string json_lines(const std::vector<Evaluation>& rows);

}  // namespace attest
