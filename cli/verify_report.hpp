#pragma once

#include <vector>

#include "cli/output.hpp"
#include "cli/verify_options.hpp"
#include "core/records/record.hpp"
#include "verify/campaign/kernel_result.hpp"

namespace attest {

/// One line a kernel: cases, checks by layer, how much of the bounds was used, and the verdict with
/// the law and layer that decided. Columns that are 0 everywhere (vacuous, crashed, timed out) are
/// left out. Of a campaign that is not complete a kernel with cases left to judge has no verdict.
void print_table(const std::vector<KernelResult>& results, const CampaignOptions& campaign,
                 bool is_complete);
/// What of each kernel was refused, fell short of a pass or was never judged; nothing for most.
void print_shortfalls(const std::vector<KernelResult>& results);
/// Failures with their evidence, of planted bugs and negative controls or of the others; writes the
/// counterexamples and prints how to replay them. `trouble` gets what could not be written.
void print_failures(const std::vector<KernelResult>& results, const VerifyOptions& options,
                    bool planted, Trouble& trouble);
/// Cases, time, where the time went, what the oracle said of the reference, and which features the
/// cases had; all that they had not with `names_coverage`, otherwise a line.
void print_summary(const std::vector<KernelResult>& results, double seconds, bool names_coverage);

/// `seconds` is the wall time of the whole campaign.
[[nodiscard]] Record record_of(const KernelResult& result, const VerifyOptions& options,
                               double seconds, const Provenance& provenance);

}  // namespace attest
