#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel.hpp"
#include "verify/coverage.hpp"
#include "verify/generators.hpp"
#include "verify/verdict.hpp"

namespace attest {

struct CampaignOptions {
  std::int64_t cases_per_kernel = 500;
  std::optional<std::chrono::duration<double>> time_limit;  ///< replaces cases_per_kernel
  std::uint64_t seed = 1;
  int jobs = 1;
  GeneratorOptions generator;
  LawSelection laws;
  int shrink_calls = 400;
  std::function<void()> on_case_done;  ///< called from any thread
};

/// What a campaign found about one kernel.
struct KernelResult {
  const KernelInfo* kernel = nullptr;
  std::int64_t cases = 0;
  std::int64_t vacuous = 0;
  std::string vacuous_reason;                    ///< of the first such case
  std::int64_t not_drawn = 0;                    ///< draws the kernel does not support
  std::map<std::string, std::int64_t> checks;    ///< by law
  std::map<std::string, std::int64_t> families;  ///< cases by input family
  Coverage coverage;                             ///< cases by feature
  double worst_o_over_bound = 0;
  double worst_lse_over_bound = 0;
  std::int64_t certified_rows = 0;  ///< rows of the f64 reference recomputed by the oracle
  double worst_certificate = 0;  ///< their worst difference over the reference's own error estimate
  std::optional<Failure> failure;  ///< shrunk
  std::int64_t failing_case = -1;  ///< index of the case before shrinking

  /// Kernels must pass; negative controls and mutants must be caught, by the law they name.
  [[nodiscard]] bool is_as_expected() const;
  [[nodiscard]] Verdict verdict() const;
};

/// Draws, runs and judges cases of every kernel in turn, in parallel; shrinks the first failing
/// case of each. The outcome does not depend on the number of jobs unless there is a time limit.
/// Throws MachineError if a device cannot be made or a launch fails.
[[nodiscard]] std::vector<KernelResult> run_campaign(const std::vector<const KernelInfo*>& kernels,
                                                     const CampaignOptions& options);

}  // namespace attest
