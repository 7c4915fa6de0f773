#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>

#include "cli/output.hpp"
#include "cli/verify.hpp"
#include "core/base/counted.hpp"
#include "verify/campaign/known_findings.hpp"

namespace attest {
namespace {

void print_known(const KnownFinding& finding, const KernelResult& result,
                 const VerifyOptions& options, const Counterexamples& kept) {
  const KnownFailures& same = result.known.at(finding.id);
  fmt::print("\n{} {}, {} {}:\n{}", as_open("known finding"), finding.id,
             same.is_shrunk ? "shrunk from" : "not shrunk,",
             origin_of(same.failing_case, options.campaign.regressions),
             describe(same.failure, *result.kernel));
  fmt::print("  finding  {}; {} with {}\n  report   {}\n", finding.summary,
             counted(same.cases, "case"), same.library, finding.described_at());
  fmt::print("{}", replay_of(same.failure, kept));
}

/// A version of which it is not known may have it all the same: then the report is worth a look.
void print_alike(const KnownFinding& finding, const KernelResult& result) {
  if (!result.failure || !finding.explains(*result.kernel, *result.failure)) return;
  fmt::print("\n{}: its failure looks like finding {}, which is known of {} alone: {}\n",
             result.kernel->name, finding.id, fmt::join(finding.versions, ", "),
             finding.described_at());
}

}  // namespace

void print_known_findings(const std::vector<KernelResult>& results, const VerifyOptions& options,
                          const Counterexamples& kept) {
  std::int64_t cases = 0, kernels = 0;
  for (const KernelResult& result : results) {
    cases += result.known_cases();
    kernels += result.known.empty() ? 0 : 1;
    for (const KnownFinding& finding : options.campaign.known_findings) {
      if (result.known.contains(finding.id)) print_known(finding, result, options, kept);
      if (result.not_reproduced.contains(finding.id)) {
        fmt::print("\nfinding {} no longer reproduces with {}: {} passes {} (known of {})\n",
                   finding.id, result.not_reproduced.at(finding.id), result.kernel->name,
                   finding.stored_case, fmt::join(finding.versions, ", "));
      }
      print_alike(finding, result);
    }
  }
  if (cases == 0) return;
  fmt::print(
      "\n{} of {} failed by known findings, which cost no verdict; --strict "
      "fails them\n",
      counted(cases, "case"), counted(kernels, "kernel"));
}

}  // namespace attest
