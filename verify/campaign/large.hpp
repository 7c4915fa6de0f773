#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {

/// Long sequences: what the small cases of a campaign cannot reach, offsets beyond 2^31 bytes and
/// sums of a hundred thousand terms among them.
struct LargeOptions {
  std::int64_t cases_per_kernel = 4;
  std::int64_t max_len = 131072;
  std::int64_t min_len = 2048;
  std::uint64_t seed = 1;
  std::string families = "*";
  /// Rows that the CPU reference checks where there is no GPU reference: each costs O(N D).
  std::int64_t sampled_rows = 64;
  /// A launch is predicted from a short one; cases that would take longer are not drawn.
  double seconds_per_launch = 2;
  std::function<void()> on_case_done;
};

/// Results of one kernel on long sequences.
struct LargeResult {
  const KernelInfo* kernel = nullptr;
  std::string left_out;  ///< why no case was run; else empty
  std::int64_t cases = 0;
  std::int64_t longest = 0;         ///< max(query_len, key_len)
  std::int64_t rows = 0;            ///< of all cases
  std::int64_t checked_rows = 0;    ///< rows that were compared in every element
  std::int64_t certified_rows = 0;  ///< recomputed by the 113-bit oracle as well
  WorstOverBound worst_over_bound;
  std::optional<Failure> failure;  ///< shrunk
};

/// Outputs of a launch against their bounds: every element where a GPU reference runs or the
/// problem is small, otherwise sampled rows, first and last of a head among them.
struct LargeCheck {
  std::optional<Failure> failure;
  std::int64_t checked_rows = 0;
  WorstOverBound worst_over_bound;
};
[[nodiscard]] LargeCheck check_large(const KernelInfo& kernel, const Case& c, Device& device,
                                     std::int64_t sampled_rows);

/// One kernel after the other, in this process. Throws MachineError when a launch fails, and
/// std::logic_error if the reference differs from the oracle by more than it says.
[[nodiscard]] std::vector<LargeResult> run_large(const std::vector<const KernelInfo*>& kernels,
                                                 const LargeOptions& options);

}  // namespace attest
