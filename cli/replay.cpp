#include "cli/replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "core/base/glob.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/base/text.hpp"
#include "core/run/mutants.hpp"
#include "core/run/registry.hpp"
#include "plugin/loader.hpp"
#include "plugin/python_subject.hpp"
#include "verify/campaign/counterexample.hpp"
#include "verify/campaign/shrink_failure.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

struct ReplayOptions {
  std::string path;
  std::vector<std::string> plugins;
  std::string timeout = "60s";
  std::string memory_limit = "8GiB";
  bool in_process = false;
};

ExitCode replay(const ReplayOptions& options) {
  const Isolation limits{
      .limits = {
          .seconds = parse_seconds("--timeout", options.timeout),
          .memory_bytes = parse_bytes("--memory-limit", options.memory_limit, least_worker_bytes)}};
  const SharedTemporaryFolder folder;
  if (!options.in_process) run_plugins_apart();
  const std::vector<std::string> plugins = load_plugins_for(options.path, options.plugins);
  const std::string inputs_file = read_counterexample(options.path).inputs_file;
  load_captured_inputs(inputs_file);
  const Subject subject = read_subject(options.path);
  Isolation isolation = limits;
  isolation.setup = {.plugins = plugins, .inputs_file = inputs_file};
  const std::unique_ptr<CaseRunner> runner = runner_for(isolation, options.in_process);
  CaseVerdict verdict;
  for (int i = 0; i < tries_in_a_fresh_process && !verdict.failure; ++i) {
    verdict = runner->run(*subject.kernel, subject.task()).verdict;
  }
  if (!verdict.failure) {
    print_not_reproduced(subject, verdict);
    return ExitCode::passed;
  }
  ask_misreadings(*runner, *subject.kernel, *verdict.failure);
  const bool is_same = verdict.failure->kind == subject.example.kind;
  fmt::print("{}\n{}",
             is_same ? std::string("reproduced")
                     : fmt::format("not the same: {} now, {} then", name_of(verdict.failure->kind),
                                   name_of(subject.example.kind)),
             describe(*verdict.failure, *subject.kernel));
  return ExitCode::verdict_failed;
}

// Far more than a campaign spends: the greedy walk ends by itself when nothing simpler fails.
constexpr ShrinkBudget thorough{.calls = 100'000, .seconds = 3600, .seconds_without_answer = 600};

/// Throws InvalidInput where the plugin is not where it was when the file was written.
void require_plugin(const Counterexample& example, const std::filesystem::path& file) {
  std::error_code error;
  if (is_python_subject(example.plugin)) return;  // whose file its own loader asks for
  if (std::filesystem::exists(example.plugin, error)) return;
  throw InvalidInput(fmt::format(
      "{}: the kernel '{}' is of the plugin '{}', which is not there; allowed: --plugin "
      "FILE, where it is now",
      file.string(), printable(example.the_case.kernel), printable(example.plugin, 4096)));
}

/// Throws InvalidInput for a Plan that the kernel does not offer: a file may be edited by hand or
/// older than the kernel, and a Plan without tiles would end the program. A problem without any
/// Plan the kernel itself refuses, with its reason.
void require_offered(const KernelInfo& kernel, const Case& c, const std::filesystem::path& file) {
  constexpr std::size_t most_named = 4;
  const std::vector<Plan> plans = kernel.plans(c.problem);
  if (plans.empty() || std::ranges::find(plans, c.plan) != plans.end()) return;
  std::vector<std::string> names;
  for (const Plan& plan : plans | std::views::take(most_named)) names.push_back(to_string(plan));
  if (plans.size() > most_named) names.push_back(fmt::format("{} more", plans.size() - most_named));
  throw InvalidInput(fmt::format("{}: 'plan' is '{}'; allowed: what {} offers for the problem: {}",
                                 file.string(), to_string(c.plan), kernel.name,
                                 fmt::join(names, "; ")));
}

/// A file, or the key of one in the campaign's folder.
std::filesystem::path path_of(const VerifyOptions& options) {
  std::error_code error;
  const std::filesystem::path key = options.out / "counterexamples" / (options.minimize + ".json");
  return std::filesystem::exists(key, error) ? key : std::filesystem::path(options.minimize);
}

}  // namespace

CaseTask Subject::task() const {
  return task_of(*kernel, {.law = example.law, .the_case = example.the_case});
}

std::vector<std::string> load_plugins_for(const std::filesystem::path& counterexample,
                                          std::vector<std::string> given) {
  const Counterexample example = read_counterexample(counterexample);
  (void)load_plugins(given);
  if (!example.plugin.empty() &&
      find_kernel(example.the_case.kernel, example.executor) == nullptr) {
    require_plugin(example, counterexample);
    (void)load_plugins({example.plugin});
    given.push_back(example.plugin);
  }
  return given;
}

Subject read_subject(const std::filesystem::path& path) {
  Subject subject{.example = read_counterexample(path)};
  const Counterexample& example = subject.example;
  subject.kernel = find_kernel(example.the_case.kernel, example.executor);
  const bool is_mutant = example.the_case.kernel.starts_with("mutant/");
  if (const std::string reason = why_no_mutants(); is_mutant && !reason.empty()) {
    throw InvalidInput(fmt::format("{}: {}", path.string(), reason));
  }
  if (subject.kernel == nullptr) {
    throw InvalidInput(fmt::format("{}: no kernel '{}' for executor {}; see attest list kernels",
                                   path.string(), printable(example.the_case.kernel),
                                   name_of(example.executor)));
  }
  const bool has_law = example.kind == Verdict::failed
                           ? find_law(example.law) != nullptr
                           : std::ranges::any_of(all_laws(), [&](const Law& law) {
                               return matches_glob(law.name, example.law);
                             });
  if (!has_law) {
    throw InvalidInput(fmt::format("{}: 'law' is '{}'; see attest list laws", path.string(),
                                   printable(example.law)));
  }
  require_offered(*subject.kernel, example.the_case, path);
  return subject;
}

std::unique_ptr<CaseRunner> runner_for(const Isolation& isolation, bool in_process) {
  if (in_process) return std::make_unique<InProcessRunner>();
  return std::make_unique<IsolatedRunner>(isolation);
}

void print_not_reproduced(const Subject& subject, const CaseVerdict& verdict) {
  fmt::print("not reproduced: {} is now {} under the law {} in\n  {}\n", subject.kernel->name,
             name_of(verdict.verdict), subject.example.law, to_string(subject.example.the_case));
  if (!verdict.reason.empty()) fmt::print("  {}\n", verdict.reason);
}

void add_replay_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("replay", "Repeat a counterexample exactly");
  const auto options = std::make_shared<ReplayOptions>();
  command->add_option("FILE", options->path, "counterexamples/<key>.json as attest verify wrote it")
      ->required();
  add_plugin_option(*command, options->plugins, "; where they are, if not where the file says");
  command->add_option("--timeout", options->timeout, "time that the case may take")
      ->capture_default_str();
  command->add_option("--memory-limit", options->memory_limit, "resident memory it may take")
      ->capture_default_str();
  command->add_flag("--in-process", options->in_process,
                    "no worker process, for debuggers: a crash ends the program");
  command->footer("Exit code 1: it failed again; 0: it did not.");
  command->callback([options, &action] { action = [options] { return replay(*options); }; });
}

ExitCode minimize(VerifyOptions options) {
  if (!options.in_process) run_plugins_apart();
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
    fmt::print("{}", replay_line(path));
    return ExitCode::verdict_failed;
  } catch (const Interrupted&) {
    return ExitCode::interrupted;
  }
}

}  // namespace attest
