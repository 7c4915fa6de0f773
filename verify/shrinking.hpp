#pragma once

#include <functional>
#include <vector>

#include "core/case.hpp"
#include "core/kernel.hpp"

namespace attest {

/// Whether kernel, plan and input family can all run the case.
[[nodiscard]] bool can_run(const KernelInfo& kernel, const Case& c);

/// Simpler cases that the kernel supports, boldest first: no lengths, padding, softcap, value_dim
/// or window; fewer batches, heads, rows, keys, dims; contiguous layouts; no mask, smaller windows;
/// the smallest tiles; plainer inputs.
[[nodiscard]] std::vector<Case> simpler_cases(const KernelInfo& kernel, const Case& c);

/// A case without a simpler one that still satisfies `fails`: a greedy walk down RapidCheck's tree
/// of shrinks. `fails` is called at most `max_calls` times.
[[nodiscard]] Case shrink(const KernelInfo& kernel, const Case& c,
                          const std::function<bool(const Case&)>& fails, int max_calls);

}  // namespace attest
