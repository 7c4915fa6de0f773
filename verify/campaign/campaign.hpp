#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/run/kernel.hpp"
#include "verify/campaign/kernel_result.hpp"
#include "verify/campaign/known_findings.hpp"
#include "verify/campaign/regressions.hpp"
#include "verify/campaign/shrink_failure.hpp"
#include "verify/cases/generators.hpp"
#include "verify/judge/verdict.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

/// Part `index` of `count` parts of a campaign: the cases with number % count == index. Parts share
/// no case, and together they are the whole.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

/// Cases of each kernel; fewer on the executor, where a case costs most.
struct CaseCounts {
  std::int64_t per_kernel;
  std::int64_t per_simt_kernel;
};
/// All kernels in a minute or two of two cores: 95 of 100 features, 544 of 621 planted bugs.
inline constexpr CaseCounts default_cases{.per_kernel = 60, .per_simt_kernel = 15};
/// All features that a kernel can have, 617 planted bugs.
inline constexpr CaseCounts thorough_cases{.per_kernel = 500, .per_simt_kernel = 150};

struct CampaignOptions {
  std::int64_t cases_per_kernel = default_cases.per_kernel;
  std::int64_t cases_per_simt_kernel = default_cases.per_simt_kernel;
  std::optional<std::chrono::duration<double>> time_limit{};  ///< replaces both
  std::uint64_t seed = 1;
  int jobs = 1;
  Shard shard{};
  GeneratorOptions generator{};
  LawSelection laws{};
  ShrinkBudget shrink{};
  /// Judged first, under a time limit by turns with drawn cases, with every law, on all kernels
  /// that support them; not on negative controls and mutants, which random cases must kill. The
  /// corpus case j of n has index j - n.
  std::vector<Regression> regressions{};
  /// Failures that are one of these are counted apart and cost no verdict, and their kernel gets
  /// all other cases too. Empty: every failure is one.
  std::vector<KnownFinding> known_findings{};
  /// Makes what judges the cases of one thread; empty: InProcessRunner. May be called from any
  /// thread.
  std::function<std::unique_ptr<CaseRunner>()> make_runner{};
  /// Asked often; true ends the campaign with the results so far.
  std::function<bool()> is_interrupted{};
  std::function<void(const KernelInfo&)> on_case_done{};  ///< called from any thread
  /// Called before each case that a shrinker tries, with how many it tried before; from any thread.
  std::function<void(const KernelInfo&, int)> on_shrink{};
  /// Gets the results so far, every two seconds and whenever a failure was shrunk; calls do not
  /// overlap.
  std::function<void(const std::vector<KernelResult>&)> on_checkpoint{};
  /// Results of an earlier campaign of the same kernels and options: what is done there is not done
  /// again.
  std::vector<KernelResult> resume_from{};
};

/// Cases that are drawn for a kernel in all shards together, without a time limit. A negative
/// control may take as many as a thorough campaign has, until one catches it.
[[nodiscard]] std::int64_t cases_of(const KernelInfo& kernel, const CampaignOptions& options);
/// Cases of a kernel in the shard of the options.
[[nodiscard]] std::int64_t cases_of_shard(const KernelInfo& kernel, const CampaignOptions& options);

/// Tasks of a kernel in its shard, by their turn: the corpus, then the cases that are drawn; under
/// a time limit these two alternate.
struct Tasks {
  std::int64_t begin = 0, end = 0;
};
/// Number of tasks of a kernel in its shard; nothing under a time limit, where they do not end.
[[nodiscard]] std::optional<std::int64_t> tasks_of(const KernelInfo& kernel,
                                                   const CampaignOptions& options);
/// Judges some of them in this thread, in their order; what fails is not shrunk, and what follows
/// it is left out. Throws what run_campaign throws, and what the runner does.
[[nodiscard]] KernelResult judge_tasks(const KernelInfo& kernel, const CampaignOptions& options,
                                       const Tasks& tasks, CaseRunner& runner);

/// Draws, runs and judges cases of every kernel in turn, in parallel; shrinks the first failing
/// case of each. A kernel that failed gets no later cases, but those that other threads had begun
/// count. Otherwise the outcome does not depend on the number of jobs unless there is a time limit.
/// Throws MachineError if a device cannot be made, or if a launch fails in this process.
[[nodiscard]] std::vector<KernelResult> run_campaign(const std::vector<const KernelInfo*>& kernels,
                                                     const CampaignOptions& options);

}  // namespace attest
