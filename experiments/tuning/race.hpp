#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace attest {

struct RaceOptions {
  std::size_t finalists = 3;  ///< never halved further
  std::size_t rounds = 11;    ///< in which each finalist is timed, those of the heats included
  double keep = 0.5;          ///< share that stays after a heat
};

/// A contender and its times, one a round that it took part in, from the first round on.
struct RaceTimes {
  std::size_t contender = 0;
  std::vector<double> times;
};

/// Successive halving. In a round each contender that is left is timed once, A B C A B C, so that
/// drifts of clock and temperature meet all of them. After rounds 1, 3, 7, ... the slower half
/// (1 - keep) leaves, judged by the median: all heats cost about alike, and slow contenders are
/// timed once. Returns all: those that stayed longest first, the faster first among equals.
[[nodiscard]] std::vector<RaceTimes> race(std::size_t contenders,
                                          const std::function<double(std::size_t)>& time,
                                          const RaceOptions& options = {});

}  // namespace attest
