#pragma once

#include <cstdint>

#include "core/attention/problem.hpp"
#include "core/base/host_device.hpp"

namespace attest {

/// Four words of 32 bits.
struct PhiloxWords {
  std::uint32_t word[4];
};

/// Philox4x32-10 [Salmon et al., SC 2011] of a counter under a key of 64 bits.
[[nodiscard]] ATTEST_HOST_DEVICE constexpr PhiloxWords philox4x32(PhiloxWords counter,
                                                                  std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(b >> 32U) ^ counter.word[1] ^ low,
                static_cast<std::uint32_t>(b),
                static_cast<std::uint32_t>(a >> 32U) ^ counter.word[3] ^ high,
                static_cast<std::uint32_t>(a)}};
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return counter;
}

/// The words that say which weights of keys 4 `group` to 4 `group` + 3 fall in row (b, h, query):
/// Philox4x32-10 with the key dropout_seed and the counter {group, query, b query_heads + h,
/// dropout_offset}.
[[nodiscard]] ATTEST_HOST_DEVICE constexpr PhiloxWords dropout_words(const Problem& problem,
                                                                     std::int64_t b, std::int64_t h,
                                                                     std::int64_t query,
                                                                     std::int64_t group) {
  return philox4x32({{static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(query),
                      static_cast<std::uint32_t>(b * problem.query_heads + h),
                      static_cast<std::uint32_t>(problem.dropout_offset)}},
                    static_cast<std::uint64_t>(problem.dropout_seed));
}

/// The least word whose weight stays: 2^32 `dropout`, rounded up; 2^32 where all weights fall.
[[nodiscard]] ATTEST_HOST_DEVICE constexpr std::uint64_t least_kept_word(const Problem& problem) {
  const double least = static_cast<double>(problem.dropout) * 4294967296.0;
  const auto whole = static_cast<std::uint64_t>(least);
  return static_cast<double>(whole) < least ? whole + 1 : whole;
}

/// Factor of a weight that stays: 1 / (1 - dropout) in fp32, two roundings; 0 where all fall.
[[nodiscard]] ATTEST_HOST_DEVICE constexpr float kept_scale(const Problem& problem) {
  return problem.dropout < 1 ? 1 / (1 - problem.dropout) : 0.0F;
}

/// True if dropout leaves the weight of a key in row (b, h, query): the definition that answers,
/// bounds and kernels share. Word key % 4 of dropout_words() of key / 4, over 2^32, is a uniform
/// number in [0, 1); the weight falls where that is below `dropout`. It hangs on no length, tile or
/// Plan.
[[nodiscard]] ATTEST_HOST_DEVICE constexpr bool keeps_weight(const Problem& problem, std::int64_t b,
                                                             std::int64_t h, std::int64_t query,
                                                             std::int64_t key) {
  if (!(problem.dropout > 0)) return true;
  return dropout_words(problem, b, h, query, key / 4).word[key % 4] >= least_kept_word(problem);
}

}  // namespace attest
