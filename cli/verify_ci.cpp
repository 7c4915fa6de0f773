#include "cli/failure_report.hpp"
#include "cli/output.hpp"
#include "cli/verify.hpp"

namespace attest {

void write_for_ci(const std::vector<KernelResult>& results, const VerifyOptions& options,
                  const Counterexamples& kept, Trouble& trouble) {
  if (!options.junit.empty()) trouble.tries([&] { write_junit(results, options, kept); });
  if (options.sarif.empty() && !is_in_github_actions()) return;
  const std::vector<FailureReport> reports = failure_reports(results, kept);
  if (!options.sarif.empty()) trouble.tries([&] { write_sarif(options.sarif, reports); });
  if (is_in_github_actions()) print_annotations(reports);
}

}  // namespace attest
