#include "cli/commands.hpp"
#include "cli/study_check.hpp"
#include "cli/study_run.hpp"

namespace attest {

void add_study_command(CLI::App& app, Action& action) {
  CLI::App* study = app.add_subcommand(
      "study", "One question, one YAML file: varies problems and Plans and measures them");
  study->require_subcommand(1);
  add_study_check_commands(*study, action);
  add_study_run_commands(*study, action);
  study->footer(
      "How to write one: experiments/study/README.md. Those shipped: attest list studies.");
}

}  // namespace attest
