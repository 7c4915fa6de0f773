#include "experiments/claims/evaluate.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "experiments/claims/formula.hpp"
#include "experiments/claims/functions.hpp"

namespace attest {
namespace {

Evaluation evaluated(const LedgerRow& row, FormulaScope scope) {
  Evaluation evaluation{.row = &row};
  try {
    for (const auto& [name, formula] : row.figures) {
      scope.values[name] = evaluate_formula(formula, scope);
    }
    evaluation.ours = filled(row.ours, scope);
    evaluation.because = filled(row.because, scope);
    if (!row.holds.empty()) {
      const bool holds = evaluate_formula(row.holds, scope) != 0;
      evaluation.found = holds ? Standing::reproduced : Standing::refuted;
    }
  } catch (const NoRecords& missing) {
    evaluation.trouble = missing.what();
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("{}: {}: {}", row.place, row.id, error.what()));
  }
  return evaluation;
}

}  // namespace

std::vector<Evaluation> evaluate(const std::vector<const LedgerRow*>& rows,
                                 const std::filesystem::path& results) {
  FormulaScope scope;
  add_arithmetic(scope);
  add_models(scope);
  add_records(scope, results);
  std::vector<Evaluation> evaluations;
  evaluations.reserve(rows.size());
  for (const LedgerRow* row : rows) evaluations.push_back(evaluated(*row, scope));
  return evaluations;
}

}  // namespace attest
