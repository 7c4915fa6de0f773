#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/case.hpp"
#include "core/kernel.hpp"

namespace attest {

/// Sizes of drawn cases.
struct GeneratorOptions {
  std::int64_t max_len = 160;
  std::int64_t max_head_dim = 128;  ///< four cases in five stay within half of it
  std::int64_t max_query_heads = 6;
  std::string families = "*";  ///< glob over the input families
};

/// The case number `index` of a campaign: Problem x Plan x layouts x input family x seed, a pure
/// function of its arguments. Lengths straddle the edges of the plan's tiles and include 1 and
/// primes; query_len lies on both sides of key_len. nullopt when the kernel supports nothing that
/// was drawn. Throws InvalidInput if the glob matches no family.
[[nodiscard]] std::optional<Case> draw_case(const KernelInfo& kernel,
                                            const GeneratorOptions& options, std::uint64_t seed,
                                            std::uint64_t index);

/// Simpler cases that the kernel supports, boldest first: fewer batches, heads, rows, keys, dims;
/// contiguous layouts; no mask; plainer inputs.
[[nodiscard]] std::vector<Case> simpler_cases(const KernelInfo& kernel, const Case& c);

/// A case without a simpler one that still satisfies `fails`: a greedy walk down RapidCheck's tree
/// of shrinks. `fails` is called at most `max_calls` times.
[[nodiscard]] Case shrink(const KernelInfo& kernel, const Case& c,
                          const std::function<bool(const Case&)>& fails, int max_calls);

}  // namespace attest
