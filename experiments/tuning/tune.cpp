#include "experiments/tuning/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "experiments/tuning/median_interval.hpp"
#include "experiments/tuning/mixed_plans.hpp"

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

/// Those of `plans` that are right; the others go to `refused`.
std::vector<Plan> verified(Bench& bench, const std::vector<Plan>& plans,
                           std::vector<RefusedPlan>& refused) {
  std::vector<Plan> right;
  for (const Plan& plan : plans) {
    if (auto reason = bench.why_wrong(plan)) {
      refused.push_back({plan, *std::move(reason)});
    } else {
      right.push_back(plan);
    }
  }
  return right;
}

}  // namespace

Tuning tune(const KernelInfo& kernel, const Problem& problem, Bench& bench,
            const Provenance& provenance, const RaceOptions& options) {
  Tuning result;
  const std::vector<Plan> offered = kernel.plans(problem);
  std::vector<Plan> right = verified(bench, offered, result.refused);
  if (right.empty()) return result;
  const auto race_them = [&](const RaceOptions& of) {
    const auto time = [&](std::size_t i) {
      ++result.timings;
      return bench.time_ms(right[i]);
    };
    return race(right.size(), time, of);
  };
  const RaceOptions qualifying{.finalists = options.finalists, .rounds = 3};
  std::vector<Plan> fastest_first;
  for (const RaceTimes& one : race_them(qualifying)) fastest_first.push_back(right[one.contender]);
  const std::vector<Plan> mixtures = mixed_plans(kernel, problem, offered, fastest_first);
  fastest_first.resize(std::min(fastest_first.size(), options.finalists));
  right = fastest_first;
  std::ranges::copy(verified(bench, mixtures, result.refused), std::back_inserter(right));
  const std::vector<RaceTimes> order = race_them(options);
  const RaceTimes& first = order.front();
  const MedianInterval ms = median_interval(first.times);
  TunedPlan row{.key = tuning_key(kernel.name, problem, gpu_name_in(provenance.device)),
                .problem = to_string(problem),
                .plan = to_string(right[first.contender]),
                .time_ms = ms.median,
                .time_low_ms = ms.low,
                .time_high_ms = ms.high,
                .rate_tflops = ms.median > 0 ? forward_flops(problem) / (ms.median * 1e9) : 0,
                .plans = static_cast<std::int64_t>(offered.size() + mixtures.size()),
                .refused = static_cast<std::int64_t>(result.refused.size()),
                .commit = provenance.commit + (provenance.dirty ? " with changes" : ""),
                .build = build_of(provenance),
                .date = provenance.date};
  if (order.size() > 1) {
    row.runner_up = to_string(right[order[1].contender]);
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
    if (plans.size() < 2 || why_unsupported(*kernel, problem, plans.front())) continue;
    chosen.push_back(kernel);
  }
  return chosen;
}

}  // namespace attest
