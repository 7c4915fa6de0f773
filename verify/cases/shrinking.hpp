#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// True if the case's input family has values for its problem.
[[nodiscard]] bool has_inputs(const Case& c);
/// A sentence why the kernel cannot run the case: its own, or that it does not offer the Plan for
/// the problem. Nothing when it can.
[[nodiscard]] std::optional<std::string> why_refused(const KernelInfo& kernel, const Case& c);
/// True if kernel, plan and input family can all run the case.
[[nodiscard]] bool can_run(const KernelInfo& kernel, const Case& c);

/// Changes the columns of Q and K. A scale that is their default follows, and V that becomes as
/// wide as they are is no case of its own.
void set_head_dim(std::int64_t head_dim, Problem& problem);

/// Simpler cases that the kernel supports, boldest first: no lengths, padding, softcap, value_dim
/// or window; fewer batches, heads, rows, keys, dims; contiguous layouts; no mask, smaller windows;
/// the smallest tiles; plainer inputs.
[[nodiscard]] std::vector<Case> simpler_cases(const KernelInfo& kernel, const Case& c);

/// A case without a simpler one that still satisfies `fails`. A greedy walk: what helped is tried
/// again at once, and after it what comes next, until nothing helps; no case is tried twice.
/// `fails` is called at most `max_calls` times.
[[nodiscard]] Case shrink(const KernelInfo& kernel, const Case& c,
                          const std::function<bool(const Case&)>& fails, int max_calls);

}  // namespace attest
