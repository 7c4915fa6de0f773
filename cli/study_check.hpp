#pragma once

#include "cli/commands.hpp"

namespace attest {

/// `attest study check`, `schema` and `keys`, below the command `study`.
void add_study_check_commands(CLI::App& study, Action& action);

}  // namespace attest
