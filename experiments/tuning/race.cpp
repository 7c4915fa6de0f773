#include "experiments/tuning/race.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/tuning/median_interval.hpp"

namespace attest {

std::vector<RaceTimes> race(std::size_t contenders, const std::function<double(std::size_t)>& time,
                            const RaceOptions& options) {
  std::vector<RaceTimes> order;  // those that are left stand before those that left
  for (std::size_t i = 0; i < contenders; ++i) order.push_back({.contender = i, .times = {}});
  std::size_t left = contenders;
  const auto run = [&](std::size_t rounds) {
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < left; ++i) order[i].times.push_back(time(order[i].contender));
    }
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(left);
    std::stable_sort(order.begin(), end, [](const RaceTimes& a, const RaceTimes& b) {
      return median_interval(a.times).median < median_interval(b.times).median;
    });
  };
  std::size_t done = 0;
  for (std::size_t rounds = 1; left > options.finalists && done + rounds < options.rounds;
       rounds *= 2) {
    run(rounds);
    done += rounds;
    const double kept = std::ceil(static_cast<double>(left) * options.keep);
    left = std::max(options.finalists, static_cast<std::size_t>(kept));
  }
  if (left > 0) run(std::max<std::size_t>(options.rounds - done, 1));
  return order;
}

}  // namespace attest
