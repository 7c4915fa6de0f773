#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "experiments/timing/median_interval.hpp"

namespace attest {

/// Way to time entrants, known by their numbers.
struct Timing {
  std::function<double(std::size_t entrant)> time{};  ///< milliseconds of a launch
  std::function<void()> begin_round{};                ///< may be empty
  std::uint64_t seed = 1;                             ///< draws the order within each round
};

/// Number of entrants, and when each was timed often enough.
struct RoundsOptions {
  std::size_t points = 1;   ///< entrants 0 .. points - 1, each timed until it is known well enough
  std::size_t peers = 0;    ///< the entrants after them, timed in every round
  std::size_t repeats = 0;  ///< so many rounds for all; 0: as many as are needed
  double target = 0.01;     ///< relative half width of an interval that is narrow enough
  std::size_t most_rounds = 60;  ///< when it never is
  /// Asked between timings: true ends after the round in which everybody was timed often enough for
  /// an interval.
  std::function<bool()> is_over{};
};

/// Times entrants in rounds: in a round everybody that is left is timed once, in an order drawn
/// anew, so that drifts of clock and temperature meet all of them alike. A point leaves when its
/// ratio to every peer, or its time where there is no peer, is known well enough. times[c] holds
/// a time a round, from the first round on.
[[nodiscard]] std::vector<std::vector<double>> timed_rounds(const RoundsOptions& options,
                                                            const Timing& timing);

/// Course of a race by successive halving.
struct RaceOptions {
  std::size_t finalists = 3;  ///< never halved further
  std::size_t rounds = 11;    ///< in which each finalist is timed, those of the heats included
  double keep = 0.5;          ///< share that stays after a heat
};

/// An entrant and its times, one a round that it took part in, from the first round on.
struct RaceTimes {
  std::size_t entrant = 0;
  std::vector<double> times;
};

/// Successive halving: rounds as of timed_rounds, but after rounds 1, 3, 7, ... the slower half
/// (1 - keep) leaves, judged by the median. All heats cost about alike, and slow entrants are
/// timed once. Returns all entrants: those that stayed longest first, the faster first among
/// equals.
[[nodiscard]] std::vector<RaceTimes> race(std::size_t entrants, const Timing& timing,
                                          const RaceOptions& options = {});

/// Speed of `time` over that of `peer`: the ratio of the times of the same rounds, as a median with
/// its interval.
[[nodiscard]] MedianInterval speed_over(const std::vector<double>& time,
                                        const std::vector<double>& peer);
/// Half the interval's width over its median; infinite where that is no number.
[[nodiscard]] double relative_half_width(const MedianInterval& interval);

}  // namespace attest
