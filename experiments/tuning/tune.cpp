#include "experiments/tuning/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/attention/operation.hpp"
#include "core/run/default_plan.hpp"
#include "experiments/timing/median_interval.hpp"
#include "experiments/timing/sampled_rows.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

std::string build_of(const Provenance& provenance) {
  return fmt::format(
      "{}, {}",
      provenance.cuda_compiler.empty() ? provenance.compiler : "nvcc " + provenance.cuda_compiler,
      provenance.build_type);
}

/// Median over rounds: what drifts meets both in a round.
double ratio_over(const RaceTimes& winner, const RaceTimes& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(winner.times.size(), other.times.size()); ++i) {
    ratios.push_back(other.times[i] / winner.times[i]);
  }
  return median_interval(std::move(ratios)).median;
}

/// Verifies and times Plans of one kernel on one problem.
class Tuner {
 public:
  Tuner(const KernelInfo& kernel, TimedProblem& timed, Gate& gate,
        const std::function<bool()>& is_interrupted, Tuning& result)
      : kernel_(kernel),
        timed_(timed),
        gate_(gate),
        is_interrupted_(is_interrupted),
        result_(result) {}

  /// Plans among `plans` that are right; the others are refused.
  [[nodiscard]] std::vector<Plan> verified(const std::vector<Plan>& plans) {
    std::vector<Plan> right;
    for (const Plan& plan : plans) {
      look_for_interrupt();
      auto reason = gate_.why_wrong({&kernel_, timed_.problem(), plan});
      if (!reason) {
        timed_.resident().put_values(0);
        reason = why_launch_wrong(timed_.resident(), kernel_, plan);
      }
      if (reason) {
        result_.refused.push_back({plan, *std::move(reason)});
      } else {
        right.push_back(plan);
      }
    }
    return right;
  }

  [[nodiscard]] std::vector<RaceTimes> race(const std::vector<Plan>& plans,
                                            const RaceOptions& options) {
    return attest::race(plans.size(),
                        {.time =
                             [&](std::size_t i) {
                               look_for_interrupt();
                               ++result_.timings;
                               return timed_.time_ms(kernel_, plans[i]);
                             },
                         .begin_round = [&] { timed_.change_values(); }},
                        options);
  }

  /// Refuses the Plan where answers that it gave while it was timed are wrong.
  [[nodiscard]] bool keeps_its_answers(const Plan& plan) {
    look_for_interrupt();
    auto reason = timed_.why_timed_answers_wrong(kernel_, plan);
    if (reason) result_.refused.push_back({plan, *std::move(reason)});
    return !reason;
  }

 private:
  void look_for_interrupt() const {
    if (is_interrupted_ && is_interrupted_()) throw Interrupted{};
  }

  const KernelInfo& kernel_;
  TimedProblem& timed_;
  Gate& gate_;
  const std::function<bool()>& is_interrupted_;
  Tuning& result_;
};

/// Fields that say how tiles are handed out to blocks; all others say what a tile is.
constexpr std::array arrangement{&Plan::grid_order, &Plan::group, &Plan::scheduling,
                                 &Plan::key_splits, &Plan::pack_gqa};

Plan arranged_like(Plan plan, const Plan& other) {
  for (const auto field : arrangement) plan.*field = other.*field;
  return plan;
}

}  // namespace

Tuning tune(const KernelInfo& kernel, TimedProblem& timed, Gate& gate, const Provenance& provenance,
            const TuneOptions& options) {
  Tuning result;
  const Problem& problem = timed.problem();
  Tuner tuner(kernel, timed, gate, options.is_interrupted, result);
  const std::vector<Plan> offered = kernel.plans(problem);
  std::vector<Plan> right = tuner.verified(offered);
  if (right.empty()) return result;
  const std::size_t finalists = options.race.finalists;
  std::vector<Plan> fastest_first;
  for (const RaceTimes& one : tuner.race(right, {.finalists = finalists, .rounds = 3})) {
    fastest_first.push_back(right[one.entrant]);
  }
  const std::vector<Plan> mixtures = mixed_plans(kernel, problem, offered, fastest_first);
  fastest_first.resize(std::min(fastest_first.size(), finalists));
  right = fastest_first;
  std::ranges::copy(tuner.verified(mixtures), std::back_inserter(right));
  std::vector<RaceTimes> order = tuner.race(right, options.race);
  // The runner-up is a figure of the row as well.
  for (std::size_t place = 0; place < std::min<std::size_t>(order.size(), 2);) {
    if (tuner.keeps_its_answers(right[order[place].entrant])) {
      ++place;
    } else {
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(place));
    }
  }
  if (order.empty()) return result;
  const RaceTimes& first = order.front();
  const MedianInterval ms = median_interval(first.times);
  TunedPlan row{
      .key = tuning_key(kernel.name, problem, gpu_name_in(provenance.device)),
      .problem = to_string(problem),
      .plan = to_string(right[first.entrant]),
      .time_ms = ms.median,
      .time_low_ms = ms.low,
      .time_high_ms = ms.high,
      .rate_tflops = ms.median > 0 ? problem.operation->flops(problem) / (ms.median * 1e9) : 0,
      .plans = static_cast<std::int64_t>(offered.size() + mixtures.size()),
      .refused = static_cast<std::int64_t>(result.refused.size()),
      .commit = provenance.commit + (provenance.dirty ? " with changes" : ""),
      .build = build_of(provenance),
      .date = provenance.date};
  if (order.size() > 1) {
    row.runner_up = to_string(right[order[1].entrant]);
    row.runner_up_ratio = ratio_over(first, order[1]);
  }
  result.winner = std::move(row);
  return result;
}

std::vector<const KernelInfo*> tunable(const std::vector<const KernelInfo*>& kernels,
                                       const Problem& problem) {
  std::vector<const KernelInfo*> chosen;
  for (const KernelInfo* kernel : kernels) {
    if (kernel->executor != Executor::gpu || kernel->role != KernelRole::kernel) continue;
    if (kernel->unavailable && !kernel->unavailable().empty()) continue;
    const std::vector<Plan> plans = kernel->plans(problem);
    // As a whole case: what takes pages alone must not be given none.
    if (plans.size() < 2 ||
        why_unsupported(*kernel,
                        {.kernel = kernel->name, .problem = problem, .plan = plans.front()})) {
      continue;
    }
    chosen.push_back(kernel);
  }
  return chosen;
}

std::vector<Plan> mixed_plans(const KernelInfo& kernel, const Problem& problem,
                              const std::vector<Plan>& offered,
                              const std::vector<Plan>& fastest_first) {
  constexpr std::size_t most_tiles = 2;
  std::vector<Plan> tiles, mixtures;
  for (const Plan& plan : fastest_first) {
    const Plan tile = arranged_like(plan, {});
    if (tiles.size() < most_tiles && std::ranges::find(tiles, tile) == tiles.end()) {
      tiles.push_back(tile);
    }
  }
  for (const Plan& tile : tiles) {
    for (const Plan& other : offered) {
      const Plan plan = arranged_like(tile, other);
      const auto is_in = [&](const std::vector<Plan>& list) {
        return std::ranges::find(list, plan) != list.end();
      };
      if (is_in(offered) || is_in(mixtures)) continue;
      if (is_offered(kernel, problem, offered, plan)) mixtures.push_back(plan);
    }
  }
  return mixtures;
}

}  // namespace attest
