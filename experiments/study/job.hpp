#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/run/ranks.hpp"
#include "experiments/study/run.hpp"

namespace attest {

/// Part of a study that this process measures: a shard of its points, and the GPU for it.
struct StudyPart {
  Shard shard{};
  std::string words{};        ///< `rank 2 of 4 (Slurm)`; empty: all of the study
  std::string visible_gpu{};  ///< for CUDA_VISIBLE_DEVICES; empty: left as it is
  bool is_gpu_shared = false;
};
/// The shard that was asked for, else the one of the rank that a launcher of MPI programs gave this
/// process. Throws what rank_from throws.
[[nodiscard]] StudyPart study_part(const std::optional<Shard>& asked,
                                   const Environment& environment, std::int64_t gpus_of_machine);

/// Functions that the program gives to the studies that it runs: `cli` alone knows the executor and
/// the models.
struct StudyProgram {
  LaunchesOf launches_of{};  ///< see ExpansionContext
  /// Counts of what is not timed, on a GPU of that model.
  std::function<LaunchModel(const GpuModel&)> model_of{};
  std::function<bool()> is_interrupted{};
};

/// Commit of the program, and its build where the commit alone does not tell: with uncommitted
/// changes, or with plugins, which may be built again under their old names.
[[nodiscard]] std::string program_and_build(const std::vector<std::string>& plugins);

/// The model of this machine's GPU, else the model with the name `device`.
[[nodiscard]] const GpuModel& gpu_model_here(const std::string& device);

/// The points of a study on this machine. `device`: the GPU whose limits and tuned Plans count
/// where this machine has none.
[[nodiscard]] Expansion expand_here(const StudySpec& spec, const std::string& device,
                                    const StudyProgram& program);

/// True if any point is measured by time: only points on a GPU are.
[[nodiscard]] bool is_timed(const Expansion& expansion);

/// A study with its points and the folder of its results.
struct StudyJob {
  StudySpec spec;
  Expansion expansion;
  ResultsFolder folder;
  RunSettings settings;
  StudyPart part;
};

/// A job that begins a study with the executor, device, seed, plugins and time budget of `asked`;
/// without a time budget the file's counts where something is timed. Writes nothing:
/// ResultsFolder::begin does. Throws InvalidInput for an unknown executor or device, MachineError
/// for an executor that this machine lacks.
[[nodiscard]] StudyJob new_job(StudySpec spec, const std::filesystem::path& folder,
                               RunSettings asked, const StudyPart& part,
                               const StudyProgram& program);

/// A job that goes on with the study in a folder. `spec` is the study's file there;
/// `time_budget_s` replaces the one it was begun with. Throws InvalidInput when the program or the
/// GPU is not the one that the study was begun with.
[[nodiscard]] StudyJob resumed_job(StudySpec spec, const ResultsFolder& folder,
                                   std::optional<double> time_budget_s, const StudyPart& part,
                                   const StudyProgram& program);

/// Measures what the folder has no records of, `threads` kernels verified at a time (0: as many as
/// suit the machine). Throws what run_study throws.
[[nodiscard]] StudyOutcome run_job(const StudyJob& job, std::size_t threads,
                                   const StudyProgram& program);

/// Text for the user before a job runs, lines with their ends: the question, counts of points and
/// kernels, what is skipped and what is not timed.
[[nodiscard]] std::string start_text(const StudyJob& job);
/// Text for the user after a job, lines with their ends: refusals, notes, answers, counts and what
/// time was spent on.
[[nodiscard]] std::string end_text(const StudyJob& job, const StudyOutcome& outcome);
/// Sentence that says how to go on with a study that is not finished; empty where it is, or where
/// other ranks still work.
[[nodiscard]] std::string how_to_go_on(const StudyJob& job, const StudyOutcome& outcome);
/// Exit code of an outcome: interrupted; verdict_failed where something was refused or an
/// expectation is refuted; inconclusive where the time budget left points out; else passed.
[[nodiscard]] ExitCode exit_code_of(const StudyOutcome& outcome);

/// Counts of skipped points by reason, a line each; empty where none is skipped.
[[nodiscard]] std::string skipped_text(const Expansion& expansion);
/// A line where a study asks for fewer rounds than make an interval, else nothing.
[[nodiscard]] std::string few_rounds_text(const StudySpec& spec);

}  // namespace attest
