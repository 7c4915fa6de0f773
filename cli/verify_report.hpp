#pragma once

#include <vector>

#include "cli/verify_options.hpp"
#include "core/records/record.hpp"
#include "verify/campaign/kernel_result.hpp"

namespace attest {

/// One line a kernel: cases, checks by layer, how much of the bounds was used, and the verdict with
/// the law and layer that decided. Columns that are 0 everywhere (vacuous, crashed, timed out) are
/// left out.
void print_table(const std::vector<KernelResult>& results);
/// What of each kernel was refused, fell short of a pass or was never judged; nothing for most.
void print_shortfalls(const std::vector<KernelResult>& results);
/// Every failure with its evidence; writes its counterexample and prints how to replay it.
void print_failures(const std::vector<KernelResult>& results, const VerifyOptions& options);
/// Cases, time, where the time went, and what the oracle said of the reference.
void print_summary(const std::vector<KernelResult>& results, double seconds);

/// `seconds` is the wall time of the whole campaign.
[[nodiscard]] Record record_of(const KernelResult& result, const VerifyOptions& options,
                               double seconds, const Provenance& provenance);

}  // namespace attest
