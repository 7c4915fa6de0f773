#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"
#include "core/records/provenance.hpp"

namespace {

int report(attest::ExitCode code, std::string_view kind, std::string_view message) {
  fmt::print(stderr, "attest: {}{}\n", kind, message);
  return static_cast<int>(code);
}

/// CLI11 says of `verfy` that a subcommand is required.
void require_known_subcommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-' || argv[1][0] == 0) return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::ranges::find(names, argv[1]) != names.end()) return;
  for (const char* own : {"worker", "plugin-subject", "rank-process"}) {  // of our processes
    std::erase(names, own);
  }
  throw attest::InvalidInput(fmt::format("'{}' is no subcommand; {}", attest::printable(argv[1]),
                                         attest::near_or_all(argv[1], names)));
}

int print_help(const CLI::App& app, const CLI::ParseError& asked) {
  (void)app.exit(asked);
  if (std::cout.flush()) return static_cast<int>(attest::ExitCode::passed);
  return report(attest::ExitCode::machine, "", "standard output: the help cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  using attest::ExitCode;
  CLI::App app{
      "Attest: is an attention kernel right, how accurate is it, and why is it as fast as it is?"};
  app.name("attest");
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       [] { return "attest at commit " + attest::current_provenance("").commit; });
  app.footer(
      "Examples:\n"
      "  attest verify                          property-test every kernel that runs here\n"
      "  attest verify --kernel 'k3*' --for 60s\n"
      "  attest replay out/counterexamples/<key>.json\n"
      "  attest explain k3_sequence_parallel    what it costs, and why\n"
      "  attest errors --kernel fa2_mma         how large its errors are\n"
      "  attest study check FILE.yaml           what a study would measure\n"
      "  attest list laws\n"
      "Each subcommand has its own --help; attest help TOPIC prints what the documents say.\n"
      "Exit codes: 0 all passed, 1 a verdict failed, 2 bad input, 3 the machine (no GPU, CUDA "
      "error, disk), 4 inconclusive (verify: too little was judged).\n"
      "Of the launcher script: `attest test` builds and runs the test suite, `attest report DIR` "
      "makes a page of\na study's results, `attest notebooks` of what the committed records show.");
  bool only_parses = false;  // for the test of the commands in documents
  app.add_flag("--parse-only", only_parses)->group("");
  attest::Action action;
  attest::add_verify_command(app, action);
  attest::add_replay_command(app, action);
  attest::add_check_command(app, action);
  attest::add_judge_command(app, action);
  attest::add_mutants_command(app, action);
  attest::add_explain_command(app, action);
  attest::add_show_command(app, action);
  attest::add_errors_command(app, action);
  attest::add_claims_command(app, action);
  attest::add_tune_command(app, action);
  attest::add_study_command(app, action);
  attest::add_bench_command(app, action);
  attest::add_list_command(app, action);
  attest::add_calibrate_command(app, action);
  attest::add_doctor_command(app, action);
  attest::add_help_command(app, action);
  attest::add_completion_command(app, action);
  attest::add_man_command(app, action);
  attest::add_worker_command(app, action);
  attest::add_plugin_subject_command(app, action);
  attest::add_rank_process_command(app, action);
  try {
    require_known_subcommand(app, argc, argv);
    app.parse(argc, argv);
    if (!app.got_subcommand("worker")) attest::require_values(app, app.get_name());
    if (only_parses) return static_cast<int>(ExitCode::passed);
    const int code = static_cast<int>(action());
    if (std::fflush(stdout) != 0) {
      throw attest::MachineError(fmt::format("standard output: {}", std::strerror(errno)));
    }
    return code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return print_help(app, error);
    return report(
        ExitCode::bad_input, "",
        fmt::format("{} (attest --help lists the subcommands and their options)", error.what()));
  } catch (const attest::InvalidInput& error) {
    return report(ExitCode::bad_input, "", error.what());
  } catch (const attest::MachineError& error) {
    return report(ExitCode::machine, "", error.what());
  } catch (const attest::KernelError& error) {
    return report(ExitCode::verdict_failed, "", error.what());
  } catch (const std::system_error& error) {  // what fmt throws when nothing can be printed
    return report(ExitCode::machine, "", error.what());
  } catch (const std::bad_alloc&) {
    return report(ExitCode::machine, "", "out of memory");
  } catch (const std::exception& error) {
    return report(ExitCode::verdict_failed, "internal error: ", error.what());
  }
}
