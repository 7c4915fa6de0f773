#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.hpp"
#include "experiments/study/language/point.hpp"
#include "experiments/study/outcome.hpp"
#include "experiments/study/results_folder.hpp"

namespace attest {

/// What models say of a launch that nobody times: FLOP, bytes, bank conflicts.
using LaunchModel =
    std::function<std::vector<Measurement>(const KernelInfo&, const Problem&, const Plan&)>;

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

/// Verifies and measures what the folder has no record of, a record a contender as soon as it is
/// known, and in the end answers the study's expectations. Points on a GPU are timed; those of an
/// executor get what models say. Throws MachineError when another run writes to the folder or the
/// device fails; what is done is kept.
[[nodiscard]] StudyOutcome run_study(const StudySpec& spec, const Expansion& expansion,
                                     const ResultsFolder& folder, const StudyRun& run);

}  // namespace attest
