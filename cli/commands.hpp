#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "core/base/error.hpp"

namespace attest {

/// Work of the subcommand that the user chose: set while parsing, run after it.
using Action = std::function<ExitCode()>;

/// Each adds one subcommand with its options, help and examples; one file a subcommand.
void add_verify_command(CLI::App& app, Action& action);
void add_replay_command(CLI::App& app, Action& action);
void add_check_command(CLI::App& app, Action& action);
void add_judge_command(CLI::App& app, Action& action);
void add_mutants_command(CLI::App& app, Action& action);
void add_explain_command(CLI::App& app, Action& action);
void add_show_command(CLI::App& app, Action& action);
void add_errors_command(CLI::App& app, Action& action);
void add_claims_command(CLI::App& app, Action& action);
void add_tune_command(CLI::App& app, Action& action);
void add_study_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_list_command(CLI::App& app, Action& action);
void add_calibrate_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
void add_help_command(CLI::App& app, Action& action);
void add_completion_command(CLI::App& app, Action& action);
void add_man_command(CLI::App& app, Action& action);
void add_worker_command(CLI::App& app, Action& action);
void add_plugin_subject_command(CLI::App& app, Action& action);
void add_rank_process_command(CLI::App& app, Action& action);

}  // namespace attest
