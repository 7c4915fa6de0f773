#include "cli/minimize.hpp"

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/replay.hpp"
#include "plugin/loader.hpp"
#include "verify/campaign/counterexample.hpp"

namespace attest {
namespace {

// Far more than a campaign spends: the greedy walk ends by itself when nothing simpler fails.
constexpr ShrinkBudget thorough{.calls = 100'000, .seconds_without_answer = 600};

/// A file, or the key of one in the campaign's folder.
std::filesystem::path path_of(const VerifyOptions& options) {
  std::error_code error;
  const std::filesystem::path key = options.out / "counterexamples" / (options.minimize + ".json");
  return std::filesystem::exists(key, error) ? key : std::filesystem::path(options.minimize);
}

}  // namespace

ExitCode minimize(VerifyOptions options) {
  options.plugins = load_plugins_for(path_of(options), options.plugins);
  if (!options.in_process) leave_questions_to_workers();
  const Subject subject = read_subject(path_of(options));
  if (!subject.example.inputs_file.empty() && options.inputs_file.empty()) {
    throw InvalidInput(
        fmt::format("--minimize: the case needs --inputs {}", subject.example.inputs_file));
  }
  catch_interrupts();
  const std::unique_ptr<CaseRunner> runner = runner_for(options.isolation(), options.in_process);
  try {
    const CaseVerdict verdict = runner->run(*subject.kernel, subject.task()).verdict;
    if (!verdict.failure) {
      print_not_reproduced(subject, verdict);
      return ExitCode::passed;
    }
    const Failure smallest = shrink_failure(*runner, *subject.kernel, *verdict.failure, thorough);
    fmt::print(
        "{}\n{}",
        smallest.the_case == subject.example.the_case ? "no simpler case fails" : "shrunk further",
        describe(smallest, *subject.kernel));
    const std::filesystem::path path = write_counterexample(
        options.out / "counterexamples", smallest, subject.kernel->executor, options.inputs_file);
    fmt::print("  replay   ./attest replay {}\n", path.string());
    return ExitCode::verdict_failed;
  } catch (const Interrupted&) {
    return ExitCode::interrupted;
  }
}

}  // namespace attest
