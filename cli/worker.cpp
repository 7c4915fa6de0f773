#include "verify/workers/worker.hpp"

#include <functional>
#include <memory>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "plugin/loader.hpp"
#include "plugin/python_process.hpp"

namespace attest {

/// Hidden from the help: `attest verify` starts it, and talks to it over a socket.
void add_worker_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(std::string(worker_argument), "");
  command->group("");
  const auto is_ahead = std::make_shared<bool>(false);
  command->add_flag(std::string(worker_ahead_flag), *is_ahead);
  command->callback([is_ahead, &action] {
    action = [is_ahead] {
      const auto load = [](const WorkerSetup& setup) {
        run_plugins_apart();
        (void)load_plugins(setup.plugins, false);
        load_captured_inputs(setup.inputs_file);
      };
      return static_cast<ExitCode>(
          run_worker(load, *is_ahead ? start_python_ahead : std::function<void()>{}));
    };
  });
}

}  // namespace attest
