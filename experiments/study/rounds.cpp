#include "experiments/study/rounds.hpp"

#include <algorithm>
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

}  // namespace

MedianInterval speed_over(const std::vector<double>& time, const std::vector<double>& rival) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(time.size(), rival.size()); ++i) {
    ratios.push_back(rival[i] / time[i]);
  }
  return median_interval(std::move(ratios));
}

double relative_half_width(const MedianInterval& interval) {
  const double width = (interval.high - interval.low) / 2 / interval.median;
  return width >= 0 ? width : std::numeric_limits<double>::infinity();
}

std::vector<std::vector<double>> timed_rounds(const RoundsOptions& options,
                                              const std::function<double(std::size_t)>& time) {
  const std::size_t contenders = options.points + options.rivals;
  std::vector<std::vector<double>> times(contenders);
  const auto is_known = [&](std::size_t point) {
    if (times[point].size() < fewest_values) return false;
    if (options.rivals == 0) {
      return relative_half_width(median_interval(times[point])) <= options.target;
    }
    for (std::size_t rival = options.points; rival < contenders; ++rival) {
      if (!(relative_half_width(speed_over(times[point], times[rival])) <= options.target)) {
        return false;
      }
    }
    return true;
  };
  std::vector<std::size_t> left(contenders);
  std::iota(left.begin(), left.end(), std::size_t{0});
  const std::size_t most = options.repeats > 0 ? options.repeats : options.most_rounds;
  for (std::size_t round = 0; round < most; ++round) {
    for (const std::size_t contender : shuffled(left, options.seed, round)) {
      times[contender].push_back(time(contender));
    }
    if (round + 1 >= fewest_values && options.is_over && options.is_over()) break;
    if (options.repeats > 0) continue;
    std::erase_if(left, [&](std::size_t c) { return c < options.points && is_known(c); });
    if (options.points > 0 && left.size() == options.rivals) break;
  }
  return times;
}

}  // namespace attest
