#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "cli/study_junit.hpp"
#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/progress.hpp"
#include "core/base/text.hpp"
#include "core/base/text_file.hpp"
#include "experiments/claims/ledger.hpp"
#include "experiments/explain/launch_counts.hpp"
#include "experiments/study/job.hpp"
#include "experiments/study/language/schema.hpp"
#include "experiments/study/shipped_studies.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {
namespace {

StudyProgram program() {
  return {.launches_of = observe_launches,
          .model_of = launch_counts,
          .is_interrupted = was_interrupted};
}

/// Says on stderr which claims of the study the ledger has not; a program without one cannot tell.
bool has_known_claims(const StudySpec& spec, const std::string& file) {
  const auto tree = spec.claims.empty() ? std::nullopt : find_tree();
  if (!tree) return true;
  const std::vector<std::string> ids = ids_of(read_ledger(ledger_folder(*tree)));
  bool are_known = true;
  for (const std::string& claim : spec.claims) {
    if (std::ranges::find(ids, claim) != ids.end()) continue;
    fmt::print(stderr, "{}: 'claims' has '{}', no id of the ledger; see attest claims\n", file,
               printable(claim));
    are_known = false;
  }
  return are_known;
}

/// Bytes of a study's file, or of the shipped study of that name.
std::string study_text(const std::string& file) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) {
    if (const ShippedStudy* shipped = find_shipped_study(file)) return std::string(shipped->text);
    std::vector<std::string> names;
    for (const ShippedStudy& study : shipped_studies()) names.emplace_back(study.name);
    const std::vector<std::string> near = near_names(file, names);
    throw InvalidInput(fmt::format(
        "{}: no such file or shipped study; {}", printable(file),
        near.empty() ? "see attest list studies" : fmt::format("near: {}", fmt::join(near, ", "))));
  }
  constexpr std::size_t most_bytes = 1 << 20;
  return read_text_file(file, most_bytes);
}

/// Nothing after a line on stderr for everything that is wrong: `FILE:LINE:COLUMN: SENTENCE`.
std::optional<StudySpec> study_or_complaints(const std::string& text, const std::string& file) {
  ParsedStudy parsed = parse_study(text, std::filesystem::path(file).stem().string());
  for (const StudyError& error : parsed.errors) {
    fmt::print(stderr, "{}\n", to_string(error, file));
  }
  if (parsed.spec && !has_known_claims(*parsed.spec, file)) return std::nullopt;
  return std::move(parsed.spec);
}

struct StudyCheckOptions {
  std::vector<std::string> files, plugins;
  std::string device = "h200";
  bool lists_points = false;
};

void print_points(const Expansion& expansion) {
  for (const Point& point : expansion.points) {
    fmt::print(
        "  {} {} on {}, {}, plan {}, inputs {} seed {}\n", point_id(*point.kernel, point.subject),
        point.kernel->name, name_of(point.kernel->executor), to_string(point.subject.problem),
        to_string(point.subject.plan), point.subject.inputs.family, point.subject.inputs.seed);
  }
}

void print_study(const StudySpec& spec, const Expansion& expansion, const std::string& device) {
  std::set<std::string> kernels, baselines, axes;
  for (const Point& point : expansion.points) {
    kernels.insert(point.kernel->name);
    for (const Point::Rival& rival : point.baselines) baselines.insert(rival.name);
    for (const auto& [name, value] : point.axes) axes.insert(name);
  }
  fmt::print("{}: {}\n", spec.name, spec.question);
  fmt::print("  {:>5} {} of {}\n", expansion.points.size(),
             noun_behind(expansion.points.size(), "point"), fmt::join(kernels, ", "));
  if (!baselines.empty()) fmt::print("        against {}\n", fmt::join(baselines, ", "));
  fmt::print("        axes {}\n", fmt::join(axes, ", "));
  fmt::print("{}{}", skipped_text(expansion), few_rounds_text(spec));
  const GpuModel& gpu = gpu_model_from_name(device);
  const EstimatedWork work = estimated_work(expansion, gpu);
  fmt::print("  one launch of each is {:.3g} FLOP, at least {:.3g} ms on an {}", work.flops,
             1e3 * work.seconds, gpu.title);
  if (spec.time_budget_s) fmt::print("; the budget is {}", format_duration(*spec.time_budget_s));
  fmt::print("\n");
}

ExitCode check_files(const StudyCheckOptions& options) {
  (void)load_plugins(options.plugins);
  load_captured_inputs("");
  ExitCode code = ExitCode::passed;
  for (const std::string& file : options.files) {
    const auto spec = study_or_complaints(study_text(file), file);
    if (!spec) {
      code = ExitCode::bad_input;
      continue;
    }
    const Expansion expansion = expand_here(*spec, options.device, program());
    print_study(*spec, expansion, options.device);
    if (options.lists_points) print_points(expansion);
    if (!expansion.points.empty()) continue;
    fmt::print(stderr, "{}: no point is left to run\n", file);
    code = ExitCode::bad_input;
  }
  return code;
}

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
  const StudyOutcome outcome = run_job(job, options.jobs, program());
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
    const StudyJob job = new_job(std::move(spec), folder, asked, part, program());
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
      resumed_job(*std::move(spec), folder, time_budget_of(options), part, program());
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

void add_check_commands(CLI::App& study, Action& action) {
  CLI::App* check = study.add_subcommand(
      "check", "Says what is wrong in the files, or what they ask for; runs nothing");
  const auto options = std::make_shared<StudyCheckOptions>();
  check->add_option("FILE", options->files, "studies, such as experiments/studies/block_size.yaml")
      ->required();
  check->add_option("--device", options->device, "GPU whose limits count where there is none")
      ->capture_default_str();
  add_plugin_option(*check, options->plugins);
  check->add_flag("--points", options->lists_points, "lists every point with its id");
  check->footer("Exit code 2 when a file is wrong or leaves nothing to run.");
  check->callback([options, &action] { action = [options] { return check_files(*options); }; });

  CLI::App* schema =
      study.add_subcommand("schema", "Prints the JSON Schema by which editors complete a study");
  schema->callback([&action] {
    action = [] {
      fmt::print("{}", study_json_schema());
      return ExitCode::passed;
    };
  });
  CLI::App* keys = study.add_subcommand("keys", "Prints what the keys of a study mean");
  keys->callback([&action] {
    action = [] {
      fmt::print("{}", study_key_table());
      return ExitCode::passed;
    };
  });
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
  add_check_commands(*study, action);
  add_run_commands(*study, action);
  study->footer(
      "How to write one: experiments/study/README.md. Those shipped: attest list studies.");
}

}  // namespace attest
