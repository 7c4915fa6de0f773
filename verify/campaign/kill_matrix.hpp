#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/operations/forward.hpp"
#include "core/records/provenance.hpp"
#include "core/run/kernel.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/campaign/killing_feature.hpp"
#include "verify/judge/judgement.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

struct KillMatrixOptions {
  const Operation* operation = &forward_operation;  ///< whose mutants, and whose rules
  std::string kernels = "mutant/*";                 ///< glob over mutants
  std::int64_t cases = 100;                         ///< of each mutant, as a campaign draws them
  /// Further cases of each mutant, drawn the same way but with the input that the peers' tests use:
  /// N(0, 1), default scale, contiguous. Only the peers judge them.
  std::int64_t normal_cases = 30;
  /// Least number of cases of each kernel of the CPU without the bug, a quarter of it on the
  /// executor; cases past `cases` are for false alarms alone.
  std::int64_t correct_cases = 0;
  std::uint64_t seed = 1;
  int jobs = 1;
  int shrink_calls = 400;
  /// Makes what judges the cases of one thread; empty: InProcessRunner.
  std::function<std::unique_ptr<CaseRunner>()> make_runner = {};
  std::function<void()> on_case_done = {};  ///< called from any thread
  /// Called once, before the first case, with how many there are.
  std::function<void(std::int64_t)> on_drawn = {};
};

/// One rule against one kernel.
struct Tally {
  std::int64_t rejected = 0;  ///< cases in which the rule rejects the kernel
  std::int64_t kills = 0;     ///< those in which it accepts the kernel without the bug
  std::map<std::string, std::int64_t> families{};  ///< kills by input family
};

/// One kernel against all rules.
struct MatrixRow {
  const KernelInfo* kernel = nullptr;
  std::int64_t cases = 0;
  std::int64_t normal_cases = 0;
  std::vector<Tally> columns{};    ///< of the operation's rules, then of our layers
  std::vector<Tally> on_normal{};  ///< of the operation's rules
  /// Our laws that rejected it, the first of each layer in a case, with their cases.
  std::map<std::string, std::int64_t> laws{};
  /// The cases by their features; a kill is one by a layer of ours. Where only a case past
  /// `KillMatrixOptions::cases` killed it, the campaign's cases before that count as well.
  FeatureTallies features{};  ///< of mutants
  /// The feature of the shrunk case that the campaign killed the mutant with.
  std::optional<KillingFeature> killing_feature{};

  [[nodiscard]] bool is_killed_by(std::size_t column) const { return columns[column].kills > 0; }
  [[nodiscard]] bool is_killed_by_us() const;
};

struct KillMatrix {
  KillMatrixOptions options;
  std::vector<MatrixRow> mutants;
  /// The kernels without the bugs on the same cases; what rejects them is a false alarm.
  std::vector<MatrixRow> correct;
  /// Mutants against the law that each names, with shrunk cases; in the order of `mutants`.
  std::vector<KernelResult> campaign;

  [[nodiscard]] std::size_t peers() const { return peer_columns(*options.operation); }
  [[nodiscard]] std::size_t columns() const { return matrix_columns(*options.operation); }
  [[nodiscard]] std::string_view column_name(std::size_t column) const {
    return attest::column_name(*options.operation, column);
  }

  /// Every mutant is killed by a layer of ours and by the law it names, and no law of ours rejects
  /// a correct kernel.
  [[nodiscard]] bool is_as_expected() const;
};

/// The mutants of the options' glob; of their operation, or of all where it is null. Throws
/// InvalidInput if there is none.
[[nodiscard]] std::vector<const KernelInfo*> mutants_of(const KillMatrixOptions& options);

/// Each mutant against random cases and all laws, until the law that it names kills it. The first
/// stage of a kill matrix.
[[nodiscard]] std::vector<KernelResult> kill_each(const std::vector<const KernelInfo*>& mutants,
                                                  const KillMatrixOptions& options);

/// Lines `mutant, law, case`, separated by tabs, of those that were killed as they name.
[[nodiscard]] std::string to_kill_lines(const std::vector<KernelResult>& results);

/// Every rule judges the same launches: each case that is drawn for a mutant is run with the bug
/// and without it. Mutants of one kernel draw the same cases, unless they have some of its variants
/// only. Throws InvalidInput if the glob matches no mutant of the operation.
[[nodiscard]] KillMatrix make_kill_matrix(const KillMatrixOptions& options);

/// Tables for readers, and the same with every count for programs.
[[nodiscard]] std::string to_markdown(const KillMatrix& matrix, const Provenance& provenance);
[[nodiscard]] std::string to_json(const KillMatrix& matrix, const Provenance& provenance);

}  // namespace attest
