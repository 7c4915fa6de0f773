#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.hpp"
#include "core/records/record.hpp"
#include "experiments/study/group_timer.hpp"
#include "experiments/study/language/parse_study.hpp"
#include "experiments/study/language/point.hpp"
#include "experiments/study/results_folder.hpp"

namespace attest {
/// Counts by models of a launch that nobody times: FLOP, bytes, bank conflicts.
using LaunchModel =
    std::function<std::vector<Measurement>(const KernelInfo&, const Problem&, const Plan&)>;

/// Settings of one writer's run, and what the program gives to it.
struct StudyRun {
  Shard shard{};
  std::uint64_t seed = 1;  ///< of the order
  std::optional<double> time_budget_s{};
  std::filesystem::path verified = "out/verified.jsonl";  ///< see VerifiedCache
  std::string build{};                                    ///< build_id
  bool is_gpu_shared = false;                             ///< ranks share it: times are flagged
  std::filesystem::path gpu_users{};  ///< folder where others are seen, GpuUsers
  std::size_t jobs = 1;               ///< threads, but for what is timed
  std::function<std::unique_ptr<CaseRunner>()> make_runner{};
  std::function<std::unique_ptr<Device>(Executor)> make_device{};
  LaunchModel model{};  ///< called from any thread
  std::function<bool()> is_interrupted{};
  ProgressOutput progress = ProgressOutput::standard();
  double warm_up_s = 0.2;
};

/// Outcome of one writer's run, and of the study where it is complete.
struct StudyOutcome {
  std::size_t points = 0;   ///< of the whole study, baselines and skipped ones not among them
  std::size_t timed = 0;    ///< kernels that got a record here, of which on executors nothing
                            ///< was timed but modelled
  std::size_t skipped = 0;  ///< by kernel, constraint or sampling, recorded here
  std::size_t over_budget = 0;
  std::vector<std::string> refused;  ///< a line each
  std::vector<std::string> notes;    ///< what a user should know: no counters, a shared GPU
  Spent spent;
  double wall_s = 0;
  bool is_interrupted = false;
  bool is_complete = false;  ///< every point of the study has a record, whoever wrote it
  /// To the expectations, when complete; all undecided when the time budget left points out.
  std::vector<Record> answers;

  /// Wall time less that of timed kernels, verification and warm-up, over the time of these
  /// kernels; NaN when nothing was timed.
  [[nodiscard]] double overhead() const;
};

/// The last record of a writer: counts, and where the time went.
[[nodiscard]] Record summary_record(const StudySpec& spec, const StudyOutcome& outcome,
                                    const Provenance& provenance);

/// Verifies and measures what the folder has no record of, a record a kernel as soon as it is
/// known, and in the end answers the study's expectations. Points on a GPU are timed; those of an
/// executor get what models say. Throws MachineError when another run writes to the folder or the
/// device fails; what is done is kept.
[[nodiscard]] StudyOutcome run_study(const StudySpec& spec, const Expansion& expansion,
                                     const ResultsFolder& folder, const StudyRun& run);

}  // namespace attest
