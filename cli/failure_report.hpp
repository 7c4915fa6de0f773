#pragma once

#include <string>
#include <vector>

#include "cli/verify.hpp"
#include "verify/judge/source_place.hpp"

namespace attest {

/// Cause of a campaign's failure, a kernel's failure or a planted bug that nobody noticed, as code
/// hosts show it beside the code.
struct FailureReport {
  std::string rule;       ///< a law; `crashed`, `timed_out`; `not_killed`: of a planted bug
  std::string statement;  ///< of the rule, in plain words
  std::string kernel{};   ///< with its executor
  std::string sentence;   ///< what is wrong, one line
  std::string text{};     ///< the shrunk problem, the worst element, how to replay it
  /// The line at which the executor saw the defect; else the function of Python, the shared object,
  /// or the line that names the kernel in the tree of Attest; where none of these is there, the
  /// counterexample. The file is relative to the current folder, or to the tree.
  SourcePlace place{};
};
[[nodiscard]] std::vector<FailureReport> failure_reports(const std::vector<KernelResult>& results,
                                                         const Counterexamples& kept);

/// Writes them as SARIF 2.1.0, with what code hosts ask for. Throws MachineError with path and
/// reason.
void write_sarif(const std::string& path, const std::vector<FailureReport>& reports);
/// True if a workflow of GitHub runs this program (GITHUB_ACTIONS=true).
[[nodiscard]] bool is_in_github_actions();
/// Prints a line each (`::error file=...`), by which a workflow shows it beside the code.
void print_annotations(const std::vector<FailureReport>& reports);

}  // namespace attest
