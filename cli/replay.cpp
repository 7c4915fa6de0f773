#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "core/registry.hpp"
#include "verify/counterexample.hpp"
#include "verify/verdict.hpp"

namespace attest {
namespace {

ExitCode replay(const std::string& path) {
  const Counterexample example = read_counterexample(path);
  load_captured_inputs(example.inputs_file);
  const KernelInfo* kernel = find_kernel(example.the_case.kernel, example.executor);
  if (kernel == nullptr) {
    throw InvalidInput(fmt::format("{}: no kernel '{}' for executor {}; see attest list kernels",
                                   path, example.the_case.kernel, name_of(example.executor)));
  }
  if (find_property(example.law) == nullptr) {
    throw InvalidInput(
        fmt::format("{}: 'law' is '{}'; see attest list properties", path, example.law));
  }
  const std::unique_ptr<Device> device = make_device(example.executor);
  Run run(*kernel, example.the_case, *device);
  const CaseVerdict verdict = verify_case(run, {.glob = example.law, .every_law = true});
  if (verdict.failure) {
    fmt::print("reproduced\n{}", describe(*verdict.failure, *kernel));
    return ExitCode::verdict_failed;
  }
  fmt::print("not reproduced: {} is now {} under the law {} in\n  {}\n", kernel->name,
             name_of(verdict.verdict), example.law, to_string(example.the_case));
  if (!verdict.reason.empty()) fmt::print("  {}\n", verdict.reason);
  return ExitCode::passed;
}

}  // namespace

void add_replay_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("replay", "Repeat a counterexample exactly");
  const auto path = std::make_shared<std::string>();
  command->add_option("FILE", *path, "counterexamples/<key>.json as attest verify wrote it")
      ->required();
  command->footer("Exit code 1: the failure was reproduced; 0: it was not.");
  command->callback([path, &action] { action = [path] { return replay(*path); }; });
}

}  // namespace attest
