#include "verify/workers/worker.hpp"

#include "cli/commands.hpp"
#include "cli/selection.hpp"

namespace attest {

/// Hidden from the help: `attest verify` starts it, and talks to it over a socket.
void add_worker_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(std::string(worker_argument), "");
  command->group("");
  command->callback([&action] {
    action = [] {
      return static_cast<ExitCode>(run_worker([](const WorkerSetup& setup) {
        (void)load_plugins(setup.plugins, false);
        load_captured_inputs(setup.inputs_file);
      }));
    };
  });
}

}  // namespace attest
