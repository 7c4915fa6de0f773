#include "experiments/timing/rounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/inputs/random.hpp"

namespace attest {
namespace {

/// Who is timed in a round, in which order [Fisher-Yates].
std::vector<std::size_t> shuffled(std::vector<std::size_t> order, std::uint64_t seed,
                                  std::size_t round) {
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto j = random_below(seed, round, i, static_cast<std::int64_t>(i));
    std::swap(order[i - 1], order[static_cast<std::size_t>(j)]);
  }
  return order;
}

void time_round(const Timing& timing, const std::vector<std::size_t>& entrants, std::size_t round,
                std::vector<std::vector<double>>& times) {
  if (timing.begin_round) timing.begin_round();
  for (const std::size_t entrant : shuffled(entrants, timing.seed, round)) {
    times[entrant].push_back(timing.time(entrant));
  }
}

std::vector<std::size_t> numbers_below(std::size_t end) {
  std::vector<std::size_t> numbers(end);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

}  // namespace

MedianInterval speed_over(const std::vector<double>& time, const std::vector<double>& peer) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(time.size(), peer.size()); ++i) {
    ratios.push_back(peer[i] / time[i]);
  }
  return median_interval(std::move(ratios));
}

double relative_half_width(const MedianInterval& interval) {
  const double width = (interval.high - interval.low) / 2 / interval.median;
  return width >= 0 ? width : std::numeric_limits<double>::infinity();
}

std::vector<std::vector<double>> timed_rounds(const RoundsOptions& options, const Timing& timing) {
  const std::size_t entrants = options.points + options.peers;
  std::vector<std::vector<double>> times(entrants);
  const auto is_known = [&](std::size_t point) {
    if (times[point].size() < fewest_values) return false;
    if (options.peers == 0) {
      return relative_half_width(median_interval(times[point])) <= options.target;
    }
    for (std::size_t peer = options.points; peer < entrants; ++peer) {
      if (!(relative_half_width(speed_over(times[point], times[peer])) <= options.target)) {
        return false;
      }
    }
    return true;
  };
  std::vector<std::size_t> left = numbers_below(entrants);
  const std::size_t most = options.repeats > 0 ? options.repeats : options.most_rounds;
  for (std::size_t round = 0; round < most; ++round) {
    time_round(timing, left, round, times);
    if (round + 1 >= fewest_values && options.is_over && options.is_over()) break;
    if (options.repeats > 0) continue;
    std::erase_if(left, [&](std::size_t c) { return c < options.points && is_known(c); });
    if (options.points > 0 && left.size() == options.peers) break;
  }
  return times;
}

std::vector<RaceTimes> race(std::size_t entrants, const Timing& timing,
                            const RaceOptions& options) {
  std::vector<std::vector<double>> times(entrants);
  std::vector<std::size_t> order = numbers_below(entrants);  // those that are left stand first
  std::size_t left = entrants, done = 0;
  const auto run = [&](std::size_t rounds) {
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(left);
    for (std::size_t round = 0; round < rounds; ++round) {
      time_round(timing, {order.begin(), end}, done++, times);
    }
    std::stable_sort(order.begin(), end, [&](std::size_t a, std::size_t b) {
      return median_interval(times[a]).median < median_interval(times[b]).median;
    });
  };
  for (std::size_t rounds = 1; left > options.finalists && done + rounds < options.rounds;
       rounds *= 2) {
    run(rounds);
    const double kept = std::ceil(static_cast<double>(left) * options.keep);
    left = std::max(options.finalists, static_cast<std::size_t>(kept));
  }
  if (left > 0) run(std::max<std::size_t>(options.rounds - done, 1));
  std::vector<RaceTimes> result;
  for (const std::size_t entrant : order) {
    result.push_back({entrant, std::move(times[entrant])});
  }
  return result;
}

}  // namespace attest
