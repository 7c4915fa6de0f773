#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/records/case.hpp"
#include "core/run/kernel.hpp"
#include "verify/judge/law.hpp"

namespace attest {

/// Verdict on one case, or on a whole campaign of one kernel.
enum class Verdict {
  passed,
  failed,
  vacuous,  ///< some elements have no finite bound: nothing was decided about them
  unsupported,
  crashed,      ///< the process that ran the kernel died
  timed_out,    ///< or did not answer in time
  inconclusive  ///< of a campaign only: nothing failed, but too few cases were decided
};
[[nodiscard]] std::string_view name_of(Verdict verdict);

/// A law that a case broke, or a kernel that gave no answer.
struct Failure {
  std::string law;  ///< without an answer: the law being checked, `*` if none was
  Case the_case;
  Check check = {};
  Verdict kind = Verdict::failed;  ///< or crashed, timed_out
  /// A sentence if the case did not fail at the first try in a fresh process: it depends on what
  /// ran before, or on chance. Such a failure is kept, and is not shrunk. Empty: it did, or nobody
  /// tried.
  std::string repetition{};
  std::string shrinking{};  ///< a sentence if the limit of time ended it before the smallest case
  /// Sentences about what may have been read where (misreadings_of), if it was asked for.
  std::vector<std::string> misreadings{};
};

/// Error over bound of the worst element with a finite bound, by name of the output.
class WorstOverBound {
 public:
  /// 0 if nothing was compared.
  [[nodiscard]] double of(std::string_view output) const;
  void raise(std::string_view output, double ratio);
  void raise(const WorstOverBound& other);

  [[nodiscard]] auto begin() const { return worst_.begin(); }
  [[nodiscard]] auto end() const { return worst_.end(); }
  friend bool operator==(const WorstOverBound&, const WorstOverBound&) = default;

 private:
  std::map<std::string, double, std::less<>> worst_;
};

/// All laws of one case.
struct CaseVerdict {
  Verdict verdict = Verdict::passed;
  std::vector<std::string> checked_laws{};
  std::optional<Failure> failure{};  ///< the first law that broke
  WorstOverBound worst_over_bound{};
  std::string reason{};
  std::vector<std::string> declined{};  ///< laws of which the kernel cannot be asked, and why
};

/// Laws against which a case is checked.
struct LawSelection {
  std::string glob = "*";
  std::set<Layer> layers{Layer::exact, Layer::bound, Layer::statistics};
  /// Each case checks all laws that need no further launch, and one drawn from those that do; true:
  /// all of them.
  bool every_law = false;
  bool asks_misreadings = false;  ///< of a case that fails: Failure::misreadings
};

/// Makes it the verdict on a kernel that says that it failed, whatever it was asked: law error_law.
void refuse(CaseVerdict& verdict, const KernelError& error, const Case& c);

/// Checks the laws that apply to the run. A KernelFault passes through.
[[nodiscard]] CaseVerdict verify_case(Run& run, const LawSelection& laws);

/// Several lines: law, kernel, problem, worst index, got, want, bound.
[[nodiscard]] std::string describe(const Failure& failure, const KernelInfo& kernel);

}  // namespace attest
