#include "cli/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "cli/study_junit.hpp"
#include "core/base/error.hpp"
#include "experiments/study/job.hpp"

namespace attest {
namespace {

struct StudyRunOptions {
  std::vector<std::string> files, plugins;
  std::string out;
  std::string executor = "auto";
  std::string shard;
  std::string time_budget;
  std::uint64_t seed = 1;
  std::string device = "h200";
  std::size_t jobs = 0;
  std::string junit;  ///< file; empty: none
  bool prints_json = false;
};

/// Loads plugins; gives their absolute paths, as a study is resumed from any folder.
std::vector<std::string> loaded_plugins(const std::vector<std::string>& paths) {
  std::vector<std::string> absolute;
  for (const std::string& path : paths) absolute.push_back(load_kernels_of(path).path);
  return absolute;
}

std::optional<double> time_budget_of(const StudyRunOptions& options) {
  if (options.time_budget.empty()) return std::nullopt;
  return parse_seconds("--time-budget", options.time_budget);
}

/// The part of the study that this process does. Sets CUDA_VISIBLE_DEVICES for a rank: CUDA looks
/// at it once, so this comes before anything asks for a GPU.
StudyPart part_of(const StudyRunOptions& options) {
  std::optional<Shard> shard;
  if (!options.shard.empty()) shard = parse_shard("--shard", options.shard);
  StudyPart part = study_part(
      shard, [](const char* name) { return std::getenv(name); }, gpus_of_machine());
  if (!part.visible_gpu.empty()) {
    (void)::setenv("CUDA_VISIBLE_DEVICES", part.visible_gpu.c_str(), 1);
  }
  return part;
}

/// Runs the job and says how it went, in `suites` too.
ExitCode run_and_print(const StudyJob& job, const StudyRunOptions& options, JsonOutput& json,
                       std::vector<JunitSuite>& suites) {
  catch_interrupts();
  const StudyOutcome outcome = run_job(job, options.jobs, study_program());
  fmt::print("{}", end_text(job, outcome));
  if (const std::string how = how_to_go_on(job, outcome); !how.empty()) {
    fmt::print(stderr, "attest: {}\n", how);
  }
  for (const Record& record : job.folder.records()) json.print(to_json(record));
  if (auto suite = junit_suite_of(job, outcome)) suites.push_back(*std::move(suite));
  return exit_code_of(outcome);
}

void write_junit(const std::vector<JunitSuite>& suites, const StudyRunOptions& options) {
  if (!options.junit.empty() && !suites.empty()) {
    write_junit_file(options.junit, "attest study", suites);
  }
}

ExitCode run_files(const StudyRunOptions& options) {
  JsonOutput json(options.prints_json);
  const StudyPart part = part_of(options);
  const RunSettings asked{.executor = options.executor,
                          .device = options.device,
                          .seed = options.seed,
                          .time_budget_s = time_budget_of(options),
                          .plugins = loaded_plugins(options.plugins)};
  load_captured_inputs("");
  std::vector<StudySpec> specs;
  for (const std::string& file : options.files) {
    auto spec = study_or_complaints(study_text(file), file);
    if (spec) specs.push_back(*std::move(spec));
  }
  if (specs.size() != options.files.size()) return ExitCode::bad_input;
  const std::filesystem::path out = options.out.empty() ? "out/studies" : options.out;
  const bool is_folder_of_one = !options.out.empty() && specs.size() == 1;
  ExitCode worst = ExitCode::passed;
  std::vector<JunitSuite> suites;
  for (StudySpec& spec : specs) {
    const std::filesystem::path folder = is_folder_of_one ? out : out / spec.name;
    const StudyJob job = new_job(std::move(spec), folder, asked, part, study_program());
    fmt::print("{}", start_text(job));
    std::fflush(stdout);
    if (job.expansion.points.empty()) {
      fmt::print(stderr, "attest: {}: no point is left to run\n", job.spec.name);
      worst = std::max(worst, ExitCode::bad_input);
      continue;
    }
    job.folder.begin(job.spec.text, job.settings, part.shard);
    worst = std::max(worst, run_and_print(job, options, json, suites));
    if (worst == ExitCode::interrupted) break;
  }
  write_junit(suites, options);
  return worst;
}

ExitCode resume_study(const StudyRunOptions& options) {
  JsonOutput json(options.prints_json);
  const StudyPart part = part_of(options);
  const ResultsFolder folder(options.out);
  const std::string text = folder.study();
  (void)loaded_plugins(folder.settings().plugins);
  load_captured_inputs("");
  auto spec = study_or_complaints(text, (folder.path() / "study.yaml").string());
  if (!spec) return ExitCode::bad_input;
  const StudyJob job =
      resumed_job(*std::move(spec), folder, time_budget_of(options), part, study_program());
  fmt::print("{}", start_text(job));
  std::fflush(stdout);
  std::vector<JunitSuite> suites;
  const ExitCode code = run_and_print(job, options, json, suites);
  write_junit(suites, options);
  return code;
}

void add_common_options(CLI::App& command, StudyRunOptions& options) {
  command.add_option("--shard", options.shard,
                     "i/n: the i-th of n parts; without it the environment of mpirun or srun says "
                     "which part this is");
  command.add_option("--time-budget", options.time_budget,
                     "90s, 5min, 1h: what is not measured by then is left out and counted");
  command.add_flag(
      "--json", options.prints_json,
      "at the end print all records of the study, one a line; what else is said goes to "
      "stderr");
  command.add_option("--junit", options.junit,
                     "file for the answers as a CI shows them: a suite a study, a case an "
                     "expectation");
  command.add_option("--jobs", options.jobs, "kernels that are verified at a time; 0: chosen")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void add_run_commands(CLI::App& study, Action& action) {
  CLI::App* run = study.add_subcommand(
      "run", "Verifies and measures the points of a study, on a GPU or without one");
  const auto options = std::make_shared<StudyRunOptions>();
  run->add_option("FILE", options->files, "studies, such as experiments/studies/block_size.yaml")
      ->required();
  run->add_option("--out", options->out, "folder for the results; else out/studies/NAME");
  run->add_option("--executor", options->executor, "auto, gpu, simt, cpu")->capture_default_str();
  add_seed_option(*run, options->seed, "of the order in which points are measured");
  run->add_option("--device", options->device, "whose models an executor uses: h200, h100, ...")
      ->capture_default_str();
  add_plugin_option(*run, options->plugins);
  add_common_options(*run, *options);
  run->footer(
      "Examples:\n"
      "  attest study run experiments/studies/block_size.yaml\n"
      "  attest study run mine.yaml --executor simt --out out/try      without a GPU\n"
      "  mpirun -n 8 attest study run mine.yaml --out shared/folder    a GPU a rank\n"
      "  attest study resume out/studies/block_size                    after Ctrl-C or a kill\n"
      "A point that gives a wrong answer is refused, not timed; exit code 1 then, or when an "
      "expectation is refuted.\n"
      "Exit code 4: neither, but the time budget ended before all points were measured; what was "
      "expected is undecided then.");
  run->callback([options, &action] { action = [options] { return run_files(*options); }; });

  CLI::App* again =
      study.add_subcommand("resume", "Goes on with a study that was interrupted or killed");
  const auto resumed = std::make_shared<StudyRunOptions>();
  again->add_option("DIR", resumed->out, "folder of the results")->required();
  add_common_options(*again, *resumed);
  again->callback([resumed, &action] { action = [resumed] { return resume_study(*resumed); }; });
}

}  // namespace

void add_study_command(CLI::App& app, Action& action) {
  CLI::App* study = app.add_subcommand(
      "study", "One question, one YAML file: varies problems and Plans and measures them");
  study->require_subcommand(1);
  add_study_check_commands(*study, action);
  add_run_commands(*study, action);
  study->footer(
      "How to write one: experiments/study/README.md. Those shipped: attest list studies.");
}

}  // namespace attest
