#include "experiments/study/job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/run/registry.hpp"
#include "core/run/tuning_key.hpp"
#include "experiments/timing/build_id.hpp"
#include "experiments/timing/median_interval.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

/// The row of the device table for this machine's GPU, else the one that was named.
const GpuModel& model_of(std::string_view description, const std::string& named) {
  for (const GpuModel& gpu : all_gpu_models()) {
    if (gpu.driver_name == gpu_name_in(description)) return gpu;
  }
  return gpu_model_from_name(named);
}

/// Description of the GPU that runs a study's kernels here; empty where an executor does.
std::string gpu_that_runs(const StudySpec& spec) {
  if (spec.executor.value_or(Executor::gpu) != Executor::gpu) return {};
  if (!why_unavailable(Executor::gpu).empty()) return {};
  return make_device(Executor::gpu)->description();
}

bool asks_for(const StudySpec& spec, std::string_view metric) {
  return std::ranges::find(spec.metrics, metric) != spec.metrics.end();
}

void apply_executor(StudySpec& spec, const std::string& executor) {
  if (executor == "auto") return;
  spec.executor = executor_from_name(executor);
  if (!spec.executor) {
    throw InvalidInput(fmt::format("--executor is '{}'; allowed: auto, gpu, simt, cpu", executor));
  }
}

void append_answers(std::string& to, const std::vector<Record>& answers) {
  for (const Record& answer : answers) {
    const auto label = [&](const char* name) { return answer.labels.at(name); };
    const std::string word = label("answer") == "no_results" ? "no results" : label("answer");
    append(to, "{:<10} {}: {}\n", word, label("that"), label("found"));
  }
}

/// Are the points of this process done, and those of others not?
bool waits_for_others(const StudyJob& job, const StudyOutcome& outcome) {
  return !job.part.words.empty() && !outcome.is_interrupted && !outcome.is_complete &&
         outcome.over_budget == 0;
}

}  // namespace

StudyPart study_part(const std::optional<Shard>& asked, const Environment& environment,
                     std::int64_t gpus_of_machine) {
  if (asked) {
    if (asked->count == 1) return {};
    return {.shard = *asked, .words = fmt::format("part {} of {}", asked->index + 1, asked->count)};
  }
  const std::optional<Rank> rank = rank_from(environment);
  if (!rank || rank->count == 1) return {};
  StudyPart part{.shard = {.index = rank->index, .count = rank->count}, .words = to_string(*rank)};
  const GpuBinding gpu = gpu_of(*rank, environment, gpus_of_machine);
  if (gpu.visible.empty()) return part;
  part.words += fmt::format(", GPU {} of {}", gpu.visible, gpu.gpus);
  part.visible_gpu = gpu.visible;
  part.is_gpu_shared = gpu.is_shared;
  return part;
}

std::string program_and_build(const std::vector<std::string>& plugins) {
  const Provenance here = current_provenance("");
  return here.dirty || !plugins.empty()
             ? fmt::format("{}{}, build {}", here.commit, here.dirty ? " with changes" : "",
                           build_id_with(plugins))
             : here.commit;
}

const GpuModel& gpu_model_here(const std::string& device) {
  if (!why_unavailable(Executor::gpu).empty()) return gpu_model_from_name(device);
  return model_of(make_device(Executor::gpu)->description(), device);
}

Expansion expand_here(const StudySpec& spec, const std::string& device,
                      const StudyProgram& program) {
  ExpansionContext context{.gpu_description = gpu_that_runs(spec),
                           .has_gpu = why_unavailable(Executor::gpu).empty(),
                           .launches_of = program.launches_of};
  context.gpu = &model_of(context.gpu_description, device);
  return expand(spec, context);
}

bool is_timed(const Expansion& expansion) {
  return std::ranges::any_of(
      expansion.points, [](const Point& point) { return point.kernel->executor == Executor::gpu; });
}

StudyJob new_job(StudySpec spec, const std::filesystem::path& folder, RunSettings asked,
                 const StudyPart& part, const StudyProgram& program) {
  apply_executor(spec, asked.executor);
  if (spec.executor) (void)make_device(*spec.executor);  // throws where it cannot be used
  Expansion expansion = expand_here(spec, asked.device, program);
  asked.name = spec.name;
  asked.program = program_and_build(asked.plugins);
  asked.gpu = gpu_name_in(gpu_that_runs(spec));
  // The file's budget is one of a GPU's time.
  if (!asked.time_budget_s && is_timed(expansion)) asked.time_budget_s = spec.time_budget_s;
  return {std::move(spec), std::move(expansion), ResultsFolder(folder), std::move(asked), part};
}

StudyJob resumed_job(StudySpec spec, const ResultsFolder& folder,
                     std::optional<double> time_budget_s, const StudyPart& part,
                     const StudyProgram& program) {
  RunSettings settings = folder.settings();
  spec.name = settings.name;
  apply_executor(spec, settings.executor);
  RunSettings here = settings;
  here.program = program_and_build(settings.plugins);
  here.gpu = gpu_name_in(gpu_that_runs(spec));
  folder.require_alike(here);
  if (time_budget_s) settings.time_budget_s = time_budget_s;
  Expansion expansion = expand_here(spec, settings.device, program);
  return {std::move(spec), std::move(expansion), folder, std::move(settings), part};
}

StudyOutcome run_job(const StudyJob& job, std::size_t threads, const StudyProgram& program) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  constexpr std::size_t most_beside_gpu = 4;  // each has a CUDA context of its own
  const std::size_t usual = is_timed(job.expansion)
                                ? std::min(most_beside_gpu, std::max<std::size_t>(1, cores / 2))
                                : cores;
  StudyRun run{.shard = job.part.shard,
               .seed = job.settings.seed,
               .time_budget_s = job.settings.time_budget_s,
               .build = build_id_with(job.settings.plugins),
               .is_gpu_shared = job.part.is_gpu_shared,
               .gpu_users = "/run/lock",
               .jobs = threads > 0 ? threads : usual};
  run.make_runner = isolated_runners(
      {.setup = {.plugins = job.settings.plugins}, .is_interrupted = program.is_interrupted});
  run.make_device = make_device;
  if (!is_timed(job.expansion) || asks_for(job.spec, "model")) {
    run.model = program.model_of(gpu_model_here(job.settings.device));
  }
  run.is_interrupted = program.is_interrupted;
  return run_study(job.spec, job.expansion, job.folder, run);
}

std::string start_text(const StudyJob& job) {
  const auto& [spec, expansion, folder, settings, part] = job;
  std::string to;
  std::set<std::string> kernels, executors;
  for (const Point& point : expansion.points) {
    kernels.insert(point.kernel->name);
    executors.insert(std::string(name_of(point.kernel->executor)));
  }
  append(to, "{}: {}\n", spec.name, spec.question);
  append(to, "  {} of {} on {}{}{}\n", counted(expansion.points.size(), "point"),
         counted(kernels.size(), "kernel"), fmt::join(executors, ", "),
         part.words.empty() ? "" : "; this is ", part.words);
  if (!expansion.points.empty() && !is_timed(expansion)) {
    append(to, "  nothing is timed without a GPU: models and the executor's counters instead\n");
    if (!spec.counters.empty()) {
      append(to, "  hardware counters need one too: {} not taken\n",
             fmt::join(spec.counters, ", "));
    }
  }
  return to + skipped_text(expansion) + few_rounds_text(spec);
}

std::string end_text(const StudyJob& job, const StudyOutcome& outcome) {
  const auto& [spec, expansion, folder, settings, part] = job;
  std::string to;
  for (const std::string& line : outcome.refused) append(to, "REFUSED {}\n", line);
  for (const std::string& note : outcome.notes) append(to, "note: {}\n", note);
  append_answers(to, outcome.answers);
  append(to, "{}: {} measured, {} refused, {} left out by the time budget, in {}", spec.name,
         outcome.timed, outcome.refused.size(), outcome.over_budget,
         format_duration(outcome.wall_s));
  if (outcome.spent.kernels > 0) {
    append(to,
           "; kernels {:.1f} s, verification {:.1f} s, warm-up {:.1f} s, overhead {:.1f} % of "
           "the kernels' time",
           outcome.spent.kernels, outcome.spent.verification, outcome.spent.warm_up,
           100 * outcome.overhead());
  }
  append(to, "\nrecords are in {0}; as a page: ./attest report {0}\n", folder.path().string());
  if (outcome.over_budget > 0) {
    append(to, "INCONCLUSIVE: the time budget ended with {} of {} not measured\n",
           outcome.over_budget, counted(outcome.points, "point"));
  }
  if (waits_for_others(job, outcome)) {
    append(to,
           "{} is done, others are not: the last one answers; where one died: attest study "
           "resume {}\n",
           part.words, folder.path().string());
  }
  return to;
}

std::string how_to_go_on(const StudyJob& job, const StudyOutcome& outcome) {
  if (waits_for_others(job, outcome) || (!outcome.is_interrupted && outcome.is_complete)) return "";
  return fmt::format("not all points are done; to go on: attest study resume {}",
                     job.folder.path().string());
}

ExitCode exit_code_of(const StudyOutcome& outcome) {
  if (outcome.is_interrupted) return ExitCode::interrupted;
  const bool is_refuted = std::ranges::any_of(outcome.answers, [](const Record& answer) {
    return answer.labels.at("answer") == "refuted";
  });
  if (!outcome.refused.empty() || is_refuted) return ExitCode::verdict_failed;
  return outcome.over_budget == 0 ? ExitCode::passed : ExitCode::inconclusive;
}

std::string skipped_text(const Expansion& expansion) {
  std::string to;
  std::map<std::pair<std::string_view, std::string>, std::size_t> counts;
  for (const Skipped& skipped : expansion.skipped) ++counts[{name_of(skipped.by), skipped.reason}];
  for (const auto& [reason, count] : counts) {
    append(to, "  {:>5} skipped by {}: {}\n", count, reason.first, reason.second);
  }
  return to;
}

std::string few_rounds_text(const StudySpec& spec) {
  constexpr auto fewest = static_cast<std::int64_t>(fewest_values);
  if (!spec.repeats || *spec.repeats >= fewest) return "";
  return fmt::format(
      "  {} rounds have no interval, so that nothing about times is decided; {} have one\n",
      *spec.repeats, fewest);
}

}  // namespace attest
