#include "plugin/plugin_subject.hpp"

#include <memory>
#include <string>

#include "cli/commands.hpp"

namespace attest {

/// Hidden from the help: who judges a plugin starts it, and talks to it over a socket.
void add_plugin_subject_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(std::string(plugin_subject_argument), "");
  command->group("");
  const auto path = std::make_shared<std::string>(), memory = std::make_shared<std::string>();
  command->add_option("PLUGIN", *path)->required();
  command->add_option("MEMORY", *memory);  // which it knows as descriptor 3
  command->callback(
      [path, memory, &action] { action = [path]() -> ExitCode { run_plugin_subject(*path); }; });
}

}  // namespace attest
