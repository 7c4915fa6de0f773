#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "verify/campaign/known_findings.hpp"
#include "verify/cases/coverage.hpp"
#include "verify/cases/refusals.hpp"
#include "verify/judge/verdict.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

/// Set of the tasks of a kernel that are done: nearly all of them in order.
struct DoneTasks {
  std::int64_t below = 0;           ///< all before this one
  std::set<std::int64_t> beyond{};  ///< and these

  void insert(std::int64_t task);
  void insert(const DoneTasks& others);
  [[nodiscard]] bool contains(std::int64_t task) const {
    return task < below || beyond.contains(task);
  }
};

/// Cases that failed by a known finding of a library.
struct KnownFailures {
  Failure failure;                 ///< of the first of them; in the end shrunk
  std::int64_t failing_case = -1;  ///< index of that case
  bool is_shrunk = false;
  std::int64_t cases = 0;
  std::string library{};  ///< in which version it was seen
};

/// Findings of a campaign about one kernel.
struct KernelResult {
  const KernelInfo* kernel = nullptr;
  std::int64_t cases = 0;        ///< judged
  std::int64_t regressions = 0;  ///< those of them that came from the corpus
  std::int64_t decided = 0;      ///< the others of them that are not vacuous: what a pass rests on
  std::int64_t vacuous = 0;
  std::int64_t unchecked = 0;  ///< drawn cases to which none of the laws asked for applied
  std::int64_t crashed = 0;
  std::int64_t timed_out = 0;
  std::string vacuous_reason{};  ///< of the first such case
  std::int64_t drawn = 0;        ///< attempts at cases: each was refused or became a case
  Refusals refusals{};           ///< of the kernel, by its sentences
  Refusals declined{};           ///< laws of which it could not be asked, with the reason
  std::int64_t given_up = 0;     ///< cases of which no attempt could run
  std::map<std::string, std::int64_t> checks{};    ///< by law
  std::map<std::string, std::int64_t> families{};  ///< cases by input family
  Coverage coverage{};                             ///< cases by feature
  WorstOverBound worst_over_bound{};
  std::int64_t certified_rows = 0;  ///< rows of the f64 reference recomputed by the oracle
  double worst_certificate = 0;  ///< their worst difference over the reference's own error estimate
  PhaseTimes seconds{};          ///< where the time went, summed over the workers
  std::optional<Failure> failure{};  ///< of the first case that failed; in the end shrunk
  std::int64_t failing_case = -1;    ///< index of that case; see Regressions for negative ones
  bool is_shrunk = false;
  std::map<std::string, KnownFailures> known{};  ///< by KnownFinding::id; they cost no verdict
  /// Findings whose stored case passed, by id, and the library that passed it.
  std::map<std::string, std::string> not_reproduced{};
  DoneTasks done{};
  std::set<std::string> facts{};    ///< of the cases that are not vacuous (claimed.hpp)
  std::optional<Case> example{};    ///< the first drawn case that is not vacuous
  std::int64_t example_index = -1;  ///< index of that case
  /// Claims that no case showed which is not vacuous; empty until all cases are done.
  std::vector<std::string> never_judged{};

  /// Adds one judged case; `known`: the finding that its failure is, if it is one.
  void add(const Case& c, const CaseAnswer& answer, std::int64_t index,
           const KnownFinding* known = nullptr);
  /// Adds what was found of other tasks of the same campaign.
  void absorb(const KernelResult& other);
  /// Replaces the first failure of a known finding by a smaller one. Where that is another defect
  /// it becomes the kernel's failure.
  void set_shrunk(const KnownFinding& known, const Failure& smallest);
  /// Cases that failed by known findings.
  [[nodiscard]] std::int64_t known_cases() const;
  /// Cases that were to be drawn, as far as the campaign went.
  [[nodiscard]] std::int64_t asked() const { return cases - regressions + given_up; }
  /// Kernels must pass; negative controls and mutants must be caught, by the law they name.
  [[nodiscard]] bool is_as_expected() const;
  /// A kernel has passed if nothing failed and at least half of the cases asked for were decided,
  /// and one of them was: cases to which no law applied do not count.
  [[nodiscard]] Verdict verdict() const;
  /// Checks made by the laws of a layer.
  [[nodiscard]] std::int64_t checks_of(Layer layer) const;
};

/// Verdict of a campaign: `failed` if any kernel is not as expected; else `inconclusive` if too
/// little of any is decided; else `passed`.
[[nodiscard]] Verdict campaign_verdict(const std::vector<KernelResult>& results);

[[nodiscard]] nlohmann::ordered_json to_json(const KernelResult& result);
/// Result that to_json() wrote. Throws InvalidInput if this program does not know the kernel,
/// nlohmann's exceptions for anything else.
[[nodiscard]] KernelResult kernel_result_from_json(const nlohmann::ordered_json& json);

/// Sentences on what of a kernel was asked for and not judged: what it refused, of which laws it
/// could not be asked, why it has not
/// passed although nothing failed, and, with `names_claims`, which of its claims no case showed. A
/// kernel that has some of its draws refused says so if it is a plugin or if cases were given up;
/// others take what they list, and most of what they refuse is Plans that a problem does not go
/// with. Nothing for negative controls and mutants.
[[nodiscard]] std::vector<std::string> shortfalls_of(const KernelResult& result,
                                                     bool names_claims = true);

}  // namespace attest
