#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"
#include "verify/cases/lengths.hpp"

namespace attest {

/// Largest sizes that are drawn.
struct SizeLimits {
  /// The most queries and keys; four times as many keys where a case has many key tiles
  /// (lengths.hpp).
  std::int64_t len;
  std::int64_t head_dim, batch, query_heads;
};
/// Limits of most cases. A batch of more than three has entries of different lengths.
inline constexpr SizeLimits usual_sizes{.len = 160, .head_dim = 256, .batch = 6, .query_heads = 28};
/// Up to here a wider head costs no length: most models have no wider ones.
inline constexpr std::int64_t usual_head_dim = 128;
/// Limits of what is large where a case comes from the heavy tail (heavy_tail.hpp): past 2^16,
/// where 16 bits and the second dimension of a grid end. The work that a case may cost decides.
inline constexpr SizeLimits tail_sizes{
    .len = 1 << 17, .head_dim = 1024, .batch = 1 << 17, .query_heads = 1 << 17};

/// Limits of what is drawn. A limit that is not set is that of usual_sizes, and in the heavy tail
/// that of tail_sizes.
struct GeneratorOptions {
  std::optional<std::int64_t> max_len = {}, max_head_dim = {}, max_batch = {}, max_query_heads = {};
  LengthWeights lengths = {};
  std::string families = "*";  ///< glob over the input families
  /// Lets tensors span more than 2^31 elements on a GPU. That takes 8 GiB of its memory for each
  /// case that runs at a time, so those of 4 bytes end there before 2^32 elements. Elsewhere they
  /// cost address space only and are always drawn.
  bool far_elements_on_gpu = false;

  [[nodiscard]] SizeLimits limits(const SizeLimits& unless_set) const {
    return {.len = max_len.value_or(unless_set.len),
            .head_dim = max_head_dim.value_or(unless_set.head_dim),
            .batch = max_batch.value_or(unless_set.batch),
            .query_heads = max_query_heads.value_or(unless_set.query_heads)};
  }
};

/// Number of times that a case is drawn until one can run.
inline constexpr std::int64_t draw_attempts = 50;

/// Attempt number `attempt` at case number `index` of a campaign, of which the kernel has refused
/// `refused` before: Problem x Plan x layouts x input family x seed, a pure function of its
/// arguments. Lengths straddle the edges of the plan's tiles and include 1 and primes; query_len
/// lies on both sides of key_len; in about one case of seven one or two
/// dimensions are far larger than usual;
/// after many refusals sizes are rounder (rounding.hpp). The kernel
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
