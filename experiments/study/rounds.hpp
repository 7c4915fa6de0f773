#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "experiments/tuning/median_interval.hpp"

namespace attest {

struct RoundsOptions {
  std::size_t points = 1;  ///< contenders 0 .. points - 1, each timed until it is known well enough
  std::size_t rivals = 0;  ///< the contenders after them, timed in every round
  std::size_t repeats = 0;       ///< so many rounds for all; 0: as many as are needed
  double target = 0.01;          ///< relative half width of an interval that is narrow enough
  std::size_t most_rounds = 60;  ///< when it never is
  std::uint64_t seed = 1;        ///< of the order within a round
  /// Asked between timings: true ends after the round in which everybody was timed often enough for
  /// an interval.
  std::function<bool()> is_over{};
};

/// Times contenders in rounds: in a round everybody that is left is timed once, in an order drawn
/// anew, so that drifts of clock and temperature meet all of them alike. A point leaves when its
/// ratio to every rival, or its time where there is no rival, is known well enough. times[c] holds
/// a time a round, from the first round on.
[[nodiscard]] std::vector<std::vector<double>> timed_rounds(
    const RoundsOptions& options, const std::function<double(std::size_t)>& time);

/// Of times of the same rounds: how many times as fast `time` is as `rival`.
[[nodiscard]] MedianInterval speed_over(const std::vector<double>& time,
                                        const std::vector<double>& rival);
/// (high - low) / 2 over the median; infinite while the interval is everything.
[[nodiscard]] double relative_half_width(const MedianInterval& interval);

}  // namespace attest
