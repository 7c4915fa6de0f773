#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/case.hpp"
#include "core/kernel.hpp"
#include "verify/lengths.hpp"

namespace attest {

/// Sizes of drawn cases.
struct GeneratorOptions {
  /// Of queries and keys; four times as many keys where a case has many key tiles (lengths.hpp).
  std::int64_t max_len = 160;
  std::int64_t max_head_dim = 128;
  std::int64_t max_batch = 3;
  std::int64_t max_query_heads = 28;
  LengthWeights lengths = {};
  std::string families = "*";  ///< glob over the input families
  /// May tensors span more than 2^31 elements on a GPU? That takes 8 GiB of its memory for each
  /// case that runs at a time. Elsewhere they cost address space only and are always drawn.
  bool far_elements_on_gpu = false;
};

/// How often a case is drawn until one can run.
inline constexpr std::int64_t draw_attempts = 50;

/// Attempt number `attempt` at case number `index` of a campaign, of which the kernel has refused
/// `refused` before: Problem x Plan x layouts x input family x seed, a pure function of its
/// arguments. Lengths straddle the edges of the plan's tiles and include 1 and primes; query_len
/// lies on both sides of key_len; after many refusals sizes are rounder (rounding.hpp). The kernel
/// may refuse it, and the family may have no values for it. Throws InvalidInput if the glob matches
/// no family.
[[nodiscard]] Case draw_attempt(const KernelInfo& kernel, const GeneratorOptions& options,
                                std::uint64_t seed, std::uint64_t index, std::int64_t attempt,
                                std::int64_t refused);

/// The first attempt at the case that can run, as far as this process knows; nullopt when the
/// kernel supports none of them. Throws as draw_attempt does.
[[nodiscard]] std::optional<Case> draw_case(const KernelInfo& kernel,
                                            const GeneratorOptions& options, std::uint64_t seed,
                                            std::uint64_t index);

}  // namespace attest
