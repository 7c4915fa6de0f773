#include "cli/study_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>

#include "cli/interrupt.hpp"
#include "cli/json_output.hpp"
#include "cli/out_option.hpp"
#include "cli/plugin_option.hpp"
#include "cli/quantities.hpp"
#include "cli/seed_option.hpp"
#include "cli/selection.hpp"
#include "cli/study_file.hpp"
#include "core/run/registry.hpp"
#include "experiments/explain/launch_counts.hpp"
#include "experiments/study/ranks.hpp"
#include "experiments/study/run.hpp"
#include "experiments/timing/build_id.hpp"
#include "verify/workers/isolated_runner.hpp"

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
  bool prints_json = false;
};

const char* from_environment(const char* name) {
  return std::getenv(name);
}

/// Which part this process does, and which GPU it takes.
struct Part {
  Shard shard{};
  std::string words{};  ///< `rank 2 of 4 (Slurm)`; empty: all of it
  bool is_gpu_shared = false;
};

/// Sets CUDA_VISIBLE_DEVICES for a rank, to be called before anything asks for a GPU: CUDA looks at
/// it once.
Part part_of(const StudyRunOptions& options) {
  if (!options.shard.empty()) {
    const Shard shard = parse_shard("--shard", options.shard);
    if (shard.count == 1) return {};
    return {.shard = shard, .words = fmt::format("part {} of {}", shard.index + 1, shard.count)};
  }
  const std::optional<Rank> rank = rank_from(from_environment);
  if (!rank || rank->count == 1) return {};
  Part part{
      .shard = {.index = rank->index, .count = rank->count},
      .words = fmt::format("rank {} of {} ({})", rank->index + 1, rank->count, rank->launcher)};
  const GpuBinding gpu = gpu_of(*rank, from_environment, gpus_of_machine());
  if (gpu.visible.empty()) return part;
  (void)::setenv("CUDA_VISIBLE_DEVICES", gpu.visible.c_str(), 1);
  part.words += fmt::format(", GPU {} of {}", gpu.visible, gpu.gpus);
  part.is_gpu_shared = gpu.is_shared;
  return part;
}

/// What the points depend on: a plugin may be built again under its old name.
std::string program_and_build(const std::vector<std::string>& plugins) {
  const Provenance here = current_provenance("");
  return here.dirty || !plugins.empty()
             ? fmt::format("{}{}, build {}", here.commit, here.dirty ? " with changes" : "",
                           build_id_with(plugins))
             : here.commit;
}

/// Loads plugins; gives their absolute paths, as a study is resumed from any folder.
std::vector<std::string> loaded_plugins(const std::vector<std::string>& paths) {
  (void)load_plugins(paths);
  std::vector<std::string> absolute;
  for (const std::string& path : paths)
    absolute.push_back(std::filesystem::weakly_canonical(path).string());
  return absolute;
}

bool asks_for(const StudySpec& spec, std::string_view metric) {
  return std::ranges::find(spec.metrics, metric) != spec.metrics.end();
}

bool is_timed(const Expansion& expansion) {
  return std::ranges::any_of(
      expansion.points, [](const Point& point) { return point.kernel->executor == Executor::gpu; });
}

void print_start(const StudySpec& spec, const Expansion& expansion, const Part& part) {
  std::set<std::string> kernels, executors;
  for (const Point& point : expansion.points) {
    kernels.insert(point.kernel->name);
    executors.insert(std::string(name_of(point.kernel->executor)));
  }
  fmt::print("{}: {}\n", spec.name, spec.question);
  fmt::print("  {} points of {} kernel{} on {}{}{}\n", expansion.points.size(), kernels.size(),
             kernels.size() == 1 ? "" : "s", fmt::join(executors, ", "),
             part.words.empty() ? "" : "; this is ", part.words);
  if (!expansion.points.empty() && !is_timed(expansion)) {
    fmt::print("  nothing is timed without a GPU: models and the executor's counters instead\n");
    if (!spec.counters.empty()) {
      fmt::print("  hardware counters need one too: {} not taken\n",
                 fmt::join(spec.counters, ", "));
    }
  }
  print_skipped(expansion);
  print_few_rounds(spec);
  std::fflush(stdout);
}

void print_answers(const std::vector<Record>& answers) {
  for (const Record& answer : answers) {
    const auto label = [&](const char* name) { return answer.labels.at(name); };
    const std::string word = label("answer") == "no_results" ? "no results" : label("answer");
    fmt::print("{:<10} {}: {}\n", word, label("that"), label("found"));
  }
}

ExitCode print_end(const StudySpec& spec, const ResultsFolder& folder, const Part& part,
                   const StudyOutcome& outcome) {
  for (const std::string& line : outcome.refused) fmt::print("REFUSED {}\n", line);
  for (const std::string& note : outcome.notes) fmt::print("note: {}\n", note);
  print_answers(outcome.answers);
  fmt::print("{}: {} measured, {} refused, {} left out by the time budget, in {}", spec.name,
             outcome.timed, outcome.refused.size(), outcome.over_budget,
             format_duration(outcome.wall_s));
  if (outcome.spent.kernels > 0) {
    fmt::print(
        "; kernels {:.1f} s, verification {:.1f} s, warm-up {:.1f} s, overhead {:.1f} % of "
        "the kernels' time",
        outcome.spent.kernels, outcome.spent.verification, outcome.spent.warm_up,
        100 * outcome.overhead());
  }
  fmt::print("\nrecords are in {0}; as a page: ./attest report {0}\n", folder.path().string());
  if (!part.words.empty() && !outcome.is_interrupted && !outcome.is_complete &&
      outcome.over_budget == 0) {
    fmt::print(
        "{} is done, others are not: the last one answers; where one died: attest study "
        "resume {}\n",
        part.words, folder.path().string());
  } else if (outcome.is_interrupted || !outcome.is_complete) {
    fmt::print(stderr, "attest: not all points are done; to go on: attest study resume {}\n",
               folder.path().string());
  }
  if (outcome.is_interrupted) return ExitCode::interrupted;
  const bool is_refuted = std::ranges::any_of(outcome.answers, [](const Record& answer) {
    return answer.labels.at("answer") == "refuted";
  });
  return outcome.refused.empty() && !is_refuted ? ExitCode::passed : ExitCode::verdict_failed;
}

/// Runs what the folder has no records of.
ExitCode run_in(const ResultsFolder& folder, const StudySpec& spec, const Expansion& expansion,
                const RunSettings& settings, const Part& part, const StudyRunOptions& options) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  constexpr std::size_t most_beside_gpu = 4;  // each has a CUDA context of its own
  const std::size_t usual =
      is_timed(expansion) ? std::min(most_beside_gpu, std::max<std::size_t>(1, cores / 2)) : cores;
  StudyRun run{.shard = part.shard,
               .seed = settings.seed,
               .time_budget_s = settings.time_budget_s,
               .build = build_id_with(settings.plugins),
               .is_gpu_shared = part.is_gpu_shared,
               .gpu_users = "/run/lock",
               .jobs = options.jobs > 0 ? options.jobs : usual};
  run.make_runner =
      isolated_runners({.setup = {.plugins = settings.plugins}, .is_interrupted = was_interrupted});
  run.make_device = make_device;
  if (!is_timed(expansion) || asks_for(spec, "model")) {
    run.model = launch_counts(gpu_model_here(settings.device));
  }
  run.is_interrupted = was_interrupted;
  catch_interrupts();
  return print_end(spec, folder, part, run_study(spec, expansion, folder, run));
}

void apply_executor(StudySpec& spec, const std::string& executor) {
  if (executor == "auto") return;
  spec.executor = executor_from_name(executor);
  if (!spec.executor) {
    throw InvalidInput(fmt::format("--executor is '{}'; allowed: auto, gpu, simt, cpu", executor));
  }
}

std::optional<double> time_budget_of(const StudyRunOptions& options) {
  if (options.time_budget.empty()) return std::nullopt;
  return parse_seconds("--time-budget", options.time_budget);
}

ExitCode run_files(const StudyRunOptions& options) {
  JsonOutput json(options.prints_json);
  const Part part = part_of(options);
  const std::optional<double> time_budget_s = time_budget_of(options);
  const std::vector<std::string> plugins = loaded_plugins(options.plugins);
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
  for (StudySpec& spec : specs) {
    const ResultsFolder folder(is_folder_of_one ? out : out / spec.name);
    apply_executor(spec, options.executor);
    if (spec.executor) (void)make_device(*spec.executor);  // throws where it cannot be used
    const Expansion expansion = expand_here(spec, options.device);
    print_start(spec, expansion, part);
    if (expansion.points.empty()) {
      fmt::print(stderr, "attest: {}: no point is left to run\n", spec.name);
      worst = std::max(worst, ExitCode::bad_input);
      continue;
    }
    RunSettings settings{.name = spec.name,
                         .program = program_and_build(plugins),
                         .executor = options.executor,
                         .device = options.device,
                         .gpu = gpu_that_runs(spec),
                         .seed = options.seed,
                         .plugins = plugins};
    // The file's budget is one of a GPU's time.
    if (is_timed(expansion)) settings.time_budget_s = spec.time_budget_s;
    if (time_budget_s) settings.time_budget_s = time_budget_s;
    folder.begin(spec.text, settings, part.shard);
    worst = std::max(worst, run_in(folder, spec, expansion, settings, part, options));
    for (const Record& record : folder.records()) json.print(to_json(record));
    if (worst == ExitCode::interrupted) break;
  }
  return worst;
}

ExitCode resume_study(const StudyRunOptions& options) {
  JsonOutput json(options.prints_json);
  const Part part = part_of(options);
  const ResultsFolder folder(options.out);
  const std::string text = folder.study();
  RunSettings settings = folder.settings();
  (void)loaded_plugins(settings.plugins);
  load_captured_inputs("");
  auto spec = study_or_complaints(text, (folder.path() / "study.yaml").string());
  if (!spec) return ExitCode::bad_input;
  spec->name = settings.name;
  apply_executor(*spec, settings.executor);
  RunSettings here = settings;
  here.program = program_and_build(settings.plugins);
  here.gpu = gpu_that_runs(*spec);
  folder.require_alike(here);
  if (const auto time_budget_s = time_budget_of(options)) settings.time_budget_s = time_budget_s;
  const Expansion expansion = expand_here(*spec, settings.device);
  print_start(*spec, expansion, part);
  const ExitCode code = run_in(folder, *spec, expansion, settings, part, options);
  for (const Record& record : folder.records()) json.print(to_json(record));
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
  command.add_option("--jobs", options.jobs, "kernels that are verified at a time; 0: chosen")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

}  // namespace

void add_study_run_commands(CLI::App& study, Action& action) {
  CLI::App* run = study.add_subcommand(
      "run", "Verifies and measures the points of a study, on a GPU or without one");
  const auto options = std::make_shared<StudyRunOptions>();
  run->add_option("FILE", options->files, "studies, such as experiments/studies/block_size.yaml")
      ->required();
  add_out_option(*run, options->out, "folder for the results; else out/studies/NAME");
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
      "expectation is refuted.");
  run->callback([options, &action] { action = [options] { return run_files(*options); }; });

  CLI::App* again =
      study.add_subcommand("resume", "Goes on with a study that was interrupted or killed");
  const auto resumed = std::make_shared<StudyRunOptions>();
  again->add_option("DIR", resumed->out, "folder of the results")->required();
  add_common_options(*again, *resumed);
  again->callback([resumed, &action] { action = [resumed] { return resume_study(*resumed); }; });
}

}  // namespace attest
