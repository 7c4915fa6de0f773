#pragma once

#include <filesystem>
#include <stdexcept>

#include "experiments/claims/formula.hpp"

namespace attest {

/// A formula asks for a record file that is not there.
class NoRecords : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Committed records as functions of formulas. FILE is a name below `results` without its ending,
/// such as 'h200/ladder'. WHICH chooses records by their labels: 'contender=k1_naive;
/// shape~causal', = for the whole label, ~ for a part of it; `verdict` and `kind` count as labels.
///
///   record(FILE, WHICH, NAME)     the measurement of that name, of the only record
///   records(FILE, WHICH)          how many there are
///   least(FILE, WHICH, NAME), most(...), total(...), geomean(...)
///   explained(KERNEL, WHICH, '/json/pointer')  what `attest explain` said: h200/hardware_check
///   mutants(RULE)                 of the kill matrix, that a rule kills: 'bound'; mutants(): all
///
/// Functions throw NoRecords for a file that is not there, and InvalidInput where WHICH does not
/// choose what they need.
void add_records(FormulaScope& scope, const std::filesystem::path& results);

}  // namespace attest
