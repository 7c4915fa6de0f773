#include "core/run/rank_process.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include "cli/commands.hpp"

namespace attest {
namespace {

constexpr std::int64_t most_ranks = 4096;

}  // namespace

/// Hidden from the help: a launch of a kernel whose ranks are processes starts them, and talks to
/// each over a socket.
void add_rank_process_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(std::string(rank_process_argument), "");
  command->group("");
  const auto rank = std::make_shared<std::int64_t>(0);
  command->add_option("RANK", *rank)
      ->required()
      ->check(CLI::Range(std::int64_t{0}, most_ranks - 1));
  command->callback(
      [rank, &action] { action = [rank]() -> ExitCode { run_rank_process(*rank); }; });
}

}  // namespace attest
