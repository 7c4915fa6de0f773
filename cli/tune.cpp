#include "experiments/tuning/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "core/base/counted.hpp"
#include "core/base/glob.hpp"
#include "core/base/progress.hpp"
#include "core/base/text.hpp"
#include "core/base/text_file.hpp"
#include "core/run/registry.hpp"
#include "core/run/tuning_table.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

struct TuneCommand : ProblemSelection {
  std::filesystem::path out = "out/tuned_plans.json";
  RaceOptions race;
};

std::vector<Problem> problems_or_complaint(const TuneCommand& options) {
  std::vector<Problem> problems = problems_of(options);
  if (problems.empty()) {
    throw InvalidInput("tune: no problem is given; allowed: --problem, --suite, several of each");
  }
  return problems;
}

/// Before the machine is asked: bad input is bad input everywhere.
void require_known_kernel(const std::string& glob) {
  std::vector<std::string> names;
  for (const KernelInfo& kernel : all_kernels()) names.push_back(kernel.name);
  require_matches({"--kernel", "kernel", "attest list kernels"}, glob, names);
}

struct Job {
  const KernelInfo* kernel;
  Problem problem;
};

std::vector<Job> jobs_of(const std::string& glob, const std::vector<Problem>& problems) {
  const std::vector<const KernelInfo*> kernels =
      select_kernels(glob, "gpu", problems.front().operation);
  std::vector<Job> jobs;
  for (const Problem& problem : problems) {
    const auto tuned = tunable(kernels, problem);
    if (tuned.empty()) {
      fmt::print(stderr, "attest: no kernel of '{}' has a choice of Plans for {}\n",
                 printable(glob), to_string(problem));
    }
    for (const KernelInfo* kernel : tuned) jobs.push_back({kernel, problem});
  }
  if (jobs.empty()) throw InvalidInput("tune: there is nothing to choose from");
  return jobs;
}

void print_tuning(const Job& job, const Tuning& tuning) {
  for (const RefusedPlan& refused : tuning.refused) {
    fmt::print("REFUSED {} {} of {}: {}\n", job.kernel->name, to_string(refused.plan),
               to_string(job.problem), refused.reason);
  }
  if (!tuning.winner) return;
  const TunedPlan& row = *tuning.winner;
  fmt::print("{:<16} {:<52} {:>8.4f} ms {:>7.1f} TFLOP/s  {}{}\n", row.key.kernel, row.problem,
             row.time_ms, row.rate_tflops, row.plan,
             row.runner_up.empty()
                 ? ""
                 : fmt::format("  ({:.3f}x: {})", row.runner_up_ratio, row.runner_up));
}

ExitCode run_tune(const TuneCommand& options) {
  const std::vector<Problem> problems = problems_or_complaint(options);
  const std::string glob = options.kernel_glob();
  require_known_kernel(glob);
  TuningTable table = read_tuning_table(options.out);
  if (const std::string reason = why_unavailable(Executor::gpu); !reason.empty()) {
    throw MachineError("tune needs a GPU: " + reason);
  }
  const std::vector<Job> jobs = jobs_of(glob, problems);
  const auto device = make_device(Executor::gpu);
  Gate gate(
      isolated_runners({.setup = {.plugins = options.plugins}, .is_interrupted = was_interrupted}));
  catch_interrupts();
  const auto start = std::chrono::steady_clock::now();
  std::size_t timings = 0, refused = 0;
  try {
    for (const Job& job : jobs) {
      TimedProblem timed(job.problem, {}, *device);
      const Tuning tuning =
          tune(*job.kernel, timed, gate, current_provenance(device->description()),
               {.race = options.race, .is_interrupted = was_interrupted});
      print_tuning(job, tuning);
      timings += tuning.timings;
      refused += tuning.refused.size();
      if (!tuning.winner) continue;
      add_row(table, *tuning.winner);
      write_whole_file(options.out, to_json(table));  // after each: a run that is killed keeps them
    }
  } catch (const Interrupted&) {
    fmt::print("interrupted\n");
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("\n{} in {}, {}, {} refused, {}\n", counted(table.rows.size(), "row"),
             options.out.string(), counted(timings, "timing"), counted(refused, "Plan"),
             format_duration(seconds));
  if (was_interrupted()) return ExitCode::interrupted;
  return refused == 0 ? ExitCode::passed : ExitCode::verdict_failed;
}

}  // namespace

void add_tune_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "tune", "Which Plan of a kernel is the fastest on this GPU: verifies and times them all");
  const auto options = std::make_shared<TuneCommand>();
  add_problem_options(*command, *options);
  command
      ->add_option("--rounds", options->race.rounds,
                   "times each finalist is timed; most Plans are dropped earlier")
      ->check(CLI::Range(std::size_t{6}, std::size_t{1000}))
      ->capture_default_str();
  command
      ->add_option("--out", options->out,
                   "table of winners; rows of other problems, kernels and GPUs in it stay")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  attest tune --suite fa3\n"
      "  attest tune --kernel fa2_mma --problem 'b4 h16 n4096 d128 bf16' --problem 'b4 h16 n4096 "
      "d128 causal_bottom_right bf16'\n"
      "  attest tune --suite fa3 --out gpu/kernels/tuned_plans.json   the table that the next "
      "build takes default Plans from\n"
      "A Plan that gives a wrong answer is not timed; exit code 1 then.");
  command->callback([options, &action] { action = [options] { return run_tune(*options); }; });
}

}  // namespace attest
