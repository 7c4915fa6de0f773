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

/// True if dropout leaves the weight of a key in row (b, h, query): the definition that answers,
/// bounds and kernels share. Word key % 4 of Philox4x32-10 with the key dropout_seed and the
/// counter {key / 4, query, b query_heads + h, dropout_offset}, over 2^32, is a uniform number in
/// [0, 1); the weight falls where that is below `dropout`. It hangs on no length, tile or Plan.
[[nodiscard]] ATTEST_HOST_DEVICE constexpr bool keeps_weight(const Problem& problem, std::int64_t b,
                                                             std::int64_t h, std::int64_t query,
                                                             std::int64_t key) {
  if (!(problem.dropout > 0)) return true;
  const PhiloxWords words =
      philox4x32({{static_cast<std::uint32_t>(key / 4), static_cast<std::uint32_t>(query),
                   static_cast<std::uint32_t>(b * problem.query_heads + h),
                   static_cast<std::uint32_t>(problem.dropout_offset)}},
                 static_cast<std::uint64_t>(problem.dropout_seed));
  return static_cast<double>(words.word[key % 4]) >=
         static_cast<double>(problem.dropout) * 4294967296.0;
}

}  // namespace attest
