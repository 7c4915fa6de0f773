#include "experiments/study/group_timer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "core/run/kernel.hpp"
#include "experiments/study/on_executor.hpp"
#include "experiments/timing/sampled_rows.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// After an error: memory that ran out leaves a device as it was, a launch that failed does not.
bool is_lost(Device& device) {
  try {
    device.synchronize();
    return false;
  } catch (const MachineError&) {
    return true;
  }
}

}  // namespace

Spent& Spent::operator+=(const Spent& other) {
  kernels += other.kernels;
  warm_up += other.warm_up;
  verification += other.verification;
  return *this;
}

std::vector<ErrorMetric> errors_asked_for(const StudySpec& spec) {
  std::vector<ErrorMetric> asked;
  for (const ErrorMetric& metric : error_metrics()) {
    if (std::ranges::find(spec.metrics, metric.name) != spec.metrics.end()) asked.push_back(metric);
  }
  return asked;
}

TimingOptions timing_options(const StudySpec& spec) {
  return {.cache = spec.cache,
          .in_graph = spec.in_graph,
          .repeats = static_cast<std::size_t>(spec.repeats.value_or(0)),
          .keep = spec.sampling.method == Sampling::Method::halving ? spec.sampling.keep : 1,
          .target = spec.target_confidence,
          .counters = spec.counters,
          .errors = errors_asked_for(spec)};
}

void GroupTimer::look_for_interrupt() const {
  if (options_.is_interrupted && options_.is_interrupted()) throw Interrupted{};
}

void GroupTimer::place(const TimedKernel& timed_kernel) {
  const auto& [family, seed, magnitude, integers] = timed_kernel.subject.inputs;
  const Paging& paging = timed_kernel.subject.layouts.paging;
  std::string key = fmt::format("{} {} {} {} {} {}", to_string(timed_kernel.subject.problem),
                                to_string(paging), family, seed, magnitude, integers);
  if (key == placed_) return;
  placed_.clear();
  timed_.reset();  // first, so that both need not fit
  timed_ = std::make_unique<TimedProblem>(
      timed_kernel.subject.problem, timed_kernel.subject.inputs, device_,
      TimedProblem::Options{.is_cold = options_.cache == CacheState::cold,
                            .in_graph = options_.in_graph,
                            .shortest_ms = options_.timing_ms,
                            .paging = paging});
  timed_->resident().draw_values();  // before rounds, which are times
  placed_ = std::move(key);
}

double GroupTimer::first_launch_s(const TimedKernel& timed_kernel) {
  const auto start = Clock::now();
  try {
    timed_->resident().launch(*timed_kernel.kernel, timed_kernel.subject.plan);
    device_.synchronize();
  } catch (const KernelError&) {
    // Said when its answer is asked for.
  }
  return seconds_since(start);
}

Measured GroupTimer::verified(const TimedKernel& timed_kernel, Spent& spent) {
  constexpr std::int64_t rows_of_errors = 32;
  Measured measured;
  if (timed_kernel.kernel->role == KernelRole::limit) {
    if (!options_.errors.empty()) measured.why_no_errors = gives_no_answer(*timed_kernel.kernel);
    return measured;
  }
  if (auto why = gate_.why_wrong(timed_kernel.candidate())) {
    measured.why_refused = *std::move(why);
    return measured;
  }
  spent.warm_up += first_launch_s(timed_kernel);
  timed_->resident().put_values(0);
  const KernelInfo& kernel = *timed_kernel.kernel;
  const Plan& plan = timed_kernel.subject.plan;
  ResidentProblem& resident = timed_->resident();
  // What no small case can show, more rows must.
  const bool many = !options_.errors.empty() || Gate::has_no_small_case(timed_kernel.candidate());
  if (!many) {
    measured.why_refused = why_launch_wrong(resident, kernel, plan).value_or("");
    return measured;
  }
  const SampledRows rows = launch_and_sample(resident, kernel, plan, rows_of_errors);
  measured.why_refused = rows.why_wrong().value_or("");
  if (measured.why_refused.empty() && !options_.errors.empty()) {
    measured.errors = row_errors(rows, timed_kernel.subject.problem, options_.errors);
  }
  return measured;
}

double GroupTimer::timed_ms(const TimedKernel& timed_kernel) {
  look_for_interrupt();
  return timed_->time_ms(*timed_kernel.kernel, timed_kernel.subject.plan);
}

void GroupTimer::count(const TimedKernel& timed_kernel, Measured& measured) {
  if (timed_kernel.kernel->timed_launch) {
    measured.why_no_counters = fmt::format(
        "{} runs in another process, where this one counts nothing", timed_kernel.kernel->name);
    return;
  }
  try {
    measured.counters = device_.count(options_.counters, [&] {
      timed_->resident().launch(*timed_kernel.kernel, timed_kernel.subject.plan);
    });
  } catch (const MachineError& error) {
    measured.why_no_counters = error.what();
  }
}

void GroupTimer::warm_up(std::vector<Entrant>& entrants) {
  const auto start = Clock::now();
  for (Entrant& entrant : entrants) {
    look_for_interrupt();
    (void)take_library_note();
    const TimedKernel& timed_kernel = *entrant.timed_kernel;
    entrant.measured->launches = timed_->launches(*timed_kernel.kernel, timed_kernel.subject.plan);
    entrant.measured->library = take_library_note();
  }
  while (seconds_since(start) < options_.warm_up_s) {
    for (const Entrant& entrant : entrants) {
      (void)timed_ms(*entrant.timed_kernel);
      if (seconds_since(start) >= options_.warm_up_s) break;
    }
  }
}

Timing GroupTimer::timing(const std::vector<Entrant>& entrants, Spent& spent) {
  return {.time =
              [&](std::size_t i) {
                const Entrant& entrant = entrants[i];
                const double ms = timed_ms(*entrant.timed_kernel);
                spent.kernels += ms * entrant.measured->launches * 1e-3;
                if (auto state = device_.state()) {
                  entrant.measured->states.push_back(*std::move(state));
                }
                return ms;
              },
          .begin_round = [this] { timed_->change_values(); },
          .seed = options_.seed};
}

void GroupTimer::check_timed_answers(const Entrant& entrant, GroupTimes& result) {
  look_for_interrupt();
  const TimedKernel& timed_kernel = *entrant.timed_kernel;
  if (timed_kernel.kernel->role == KernelRole::limit) return;
  std::optional<std::string> why;
  try {
    why = timed_->why_timed_answers_wrong(*timed_kernel.kernel, timed_kernel.subject.plan);
  } catch (const MachineError& error) {
    why = error.what();
    if (is_lost(device_)) result.device_lost = error.what();
  }
  if (!why) return;
  *entrant.measured = {};
  entrant.measured->why_refused = *std::move(why);
}

std::size_t GroupTimer::halve(std::vector<Entrant>& entrants, std::size_t points, Spent& spent) {
  if (options_.keep >= 1 || points <= points_a_group) return points;
  std::size_t rounds = 1;  // as many as the heats need: 1, 2, 4, ...
  for (double left = static_cast<double>(points); left > points_a_group; left *= options_.keep) {
    rounds *= 2;
  }
  const auto order = race(points, timing(entrants, spent),
                          {.finalists = points_a_group, .rounds = rounds, .keep = options_.keep});
  std::vector<Entrant> left;
  for (const RaceTimes& one : order) {
    const Entrant& entrant = entrants[one.entrant];
    if (left.size() < points_a_group) {
      entrant.measured->states.clear();  // timed again, beside the baselines
      left.push_back(entrant);
    } else {
      entrant.measured->left_race = true;
      entrant.measured->times_ms = one.times;
    }
  }
  left.insert(left.end(), entrants.begin() + static_cast<std::ptrdiff_t>(points), entrants.end());
  entrants = std::move(left);
  return points_a_group;
}

/// A counter that fell was begun anew, and says nothing.
std::map<std::string, double> growth(const std::map<std::string, double>& before,
                                     const std::map<std::string, double>& after) {
  std::map<std::string, double> grown;
  for (const auto& [name, value] : after) {
    const auto found = before.find(name);
    if (found != before.end() && value >= found->second) grown[name] = value - found->second;
  }
  return grown;
}

GroupTimes GroupTimer::measure(const Group& group, double seconds) {
  const auto start = Clock::now();
  GroupTimes result;
  result.points.resize(group.points.size());
  result.baselines.resize(group.baselines.size());
  std::vector<Entrant> entrants;
  const auto admit = [&](const std::vector<TimedKernel>& timed_kernels,
                         std::vector<Measured>& measured) {
    for (std::size_t i = 0; i < timed_kernels.size() && result.device_lost.empty(); ++i) {
      look_for_interrupt();
      try {
        place(timed_kernels[i]);
        measured[i] = verified(timed_kernels[i], result.spent);
      } catch (const MachineError& error) {
        measured[i].why_refused = error.what();
        if (is_lost(device_)) result.device_lost = error.what();
      }
      if (measured[i].why_refused.empty()) entrants.push_back({&timed_kernels[i], &measured[i]});
    }
  };
  admit(group.points, result.points);
  std::size_t points = entrants.size();
  admit(group.baselines, result.baselines);
  result.spent.verification = seconds_since(start) - result.spent.warm_up;
  const bool is_asked = points > 0 || std::ranges::any_of(group.baselines, &TimedKernel::is_wanted);
  if (!result.device_lost.empty() || !is_asked || entrants.empty()) return result;

  const auto before_warm_up = Clock::now();
  warm_up(entrants);
  const auto throttled_before_ms = device_.throttled_ms();
  result.spent.warm_up += seconds_since(before_warm_up);

  const std::vector<Entrant> all = entrants;
  points = halve(entrants, points, result.spent);
  if (points == 0) points = entrants.size();  // only baselines have no record yet
  auto times = timed_rounds({.points = points,
                             .peers = entrants.size() - points,
                             .repeats = options_.repeats,
                             .target = options_.target,
                             .is_over = [&] { return seconds_since(start) >= seconds; }},
                            timing(entrants, result.spent));
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    entrants[i].measured->times_ms = std::move(times[i]);
  }
  const auto throttled_ms = growth(throttled_before_ms, device_.throttled_ms());
  const auto before_check = Clock::now();
  for (const Entrant& entrant : all) {
    if (result.device_lost.empty()) check_timed_answers(entrant, result);
  }
  result.spent.verification += seconds_since(before_check);
  if (!result.device_lost.empty()) return result;

  const auto before_counters = Clock::now();
  for (const Entrant& entrant : entrants) {
    if (!entrant.measured->why_refused.empty()) continue;
    entrant.measured->throttled_ms = throttled_ms;
    if (!options_.counters.empty() && entrant.timed_kernel->is_wanted) {
      count(*entrant.timed_kernel, *entrant.measured);
    }
  }
  result.spent.warm_up += seconds_since(before_counters);
  return result;
}

}  // namespace attest
