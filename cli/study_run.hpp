#pragma once

#include "cli/commands.hpp"

namespace attest {

/// `attest study run` and `attest study resume`, below the command `study`.
void add_study_run_commands(CLI::App& study, Action& action);

}  // namespace attest
