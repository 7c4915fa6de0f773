#pragma once

// How SMs are shared between the keys that entries have in common, which tensor cores decide, and
// entries' own keys, which memory decides. Blocks of the former fill an SM; those of the latter run
// beside them on the SMs that are left, or follow.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gpu/primitives/tile_plan.hpp"

namespace attest {

/// The work of a Cascade under Overlap::yes on a card of Hopper. Rates are an H200's.
struct CascadeWork {
  std::int64_t pairs = 0;         ///< of a KV head and 128 rows: each reads all shared keys
  std::int64_t shared_tiles = 0;  ///< of 128 keys
  double own_bytes = 0;           ///< of K and V that belong to single entries

  static constexpr double us_a_tile = 1.77;        ///< 128 rows against 128 keys of D 128
  static constexpr double sm_bytes_a_us = 50e3;    ///< an SM's, by instructions of its warps
  static constexpr double all_bytes_a_us = 4.4e6;  ///< what memory gives

  [[nodiscard]] static double reading(double bytes, std::int64_t sms) {
    return bytes / std::min(all_bytes_a_us, sm_bytes_a_us * static_cast<double>(sms));
  }
  /// Microseconds of the shared keys in so many chunks.
  [[nodiscard]] double shared(std::int64_t chunks, std::int64_t sms) const {
    const std::int64_t waves = ceil_div(pairs * chunks, sms);
    return us_a_tile * static_cast<double>(waves * ceil_div(shared_tiles, chunks));
  }
  /// Microseconds of all where own keys have the SMs that shared ones leave.
  [[nodiscard]] double beside(std::int64_t chunks, std::int64_t sms) const {
    const std::int64_t left = sms - pairs * chunks;
    const double first = shared(chunks, sms);
    return left > 0 ? std::max(first, reading(own_bytes, left))
                    : std::numeric_limits<double>::infinity();
  }
  /// The same where own keys have their part of every SM, and most begin late.
  [[nodiscard]] double after(std::int64_t chunks, std::int64_t sms) const {
    const std::int64_t late = std::min(sms, pairs * chunks);
    const double share = static_cast<double>(late) / static_cast<double>(sms);
    return shared(chunks, sms) + reading(own_bytes * share, late);
  }
  /// Chunks of the shared keys with which all is done soonest.
  [[nodiscard]] std::int64_t best_chunks(std::int64_t sms) const {
    std::int64_t best = 1;
    double least = std::min(beside(1, sms), after(1, sms));
    for (std::int64_t chunks = 2; chunks <= std::max<std::int64_t>(1, sms / pairs); ++chunks) {
      const double us = std::min(beside(chunks, sms), after(chunks, sms));
      if (us < least) {
        least = us;
        best = chunks;
      }
    }
    return best;
  }
};

}  // namespace attest
