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

void GroupTimer::place(const Contender& contender) {
  const auto& [family, seed, magnitude, integers] = contender.subject.inputs;
  const Paging& paging = contender.subject.layouts.paging;
  std::string key = fmt::format("{} {} {} {} {} {}", to_string(contender.subject.problem),
                                to_string(paging), family, seed, magnitude, integers);
  if (key == placed_) return;
  placed_.clear();
  timed_.reset();  // first, so that both need not fit
  timed_ = std::make_unique<TimedProblem>(
      contender.subject.problem, contender.subject.inputs, device_,
      TimedProblem::Options{.is_cold = options_.cache == CacheState::cold,
                            .in_graph = options_.in_graph,
                            .shortest_ms = options_.timing_ms,
                            .paging = paging});
  timed_->resident().draw_values();  // before rounds, which are times
  placed_ = std::move(key);
}

double GroupTimer::first_launch_s(const Contender& contender) {
  const auto start = Clock::now();
  try {
    timed_->resident().launch(*contender.kernel, contender.subject.plan);
    device_.synchronize();
  } catch (const KernelError&) {
    // Said when its answer is asked for.
  }
  return seconds_since(start);
}

Measured GroupTimer::verified(const Contender& contender, Spent& spent) {
  constexpr std::int64_t rows_of_errors = 32;
  Measured measured;
  if (contender.kernel->role == KernelRole::limit) {
    if (!options_.errors.empty()) measured.why_no_errors = gives_no_answer(*contender.kernel);
    return measured;
  }
  if (auto why = gate_.why_wrong(contender.candidate())) {
    measured.why_refused = *std::move(why);
    return measured;
  }
  spent.warm_up += first_launch_s(contender);
  timed_->resident().put_values(0);
  const KernelInfo& kernel = *contender.kernel;
  const Plan& plan = contender.subject.plan;
  ResidentProblem& resident = timed_->resident();
  // What no small case can show, more rows must.
  const bool many = !options_.errors.empty() || Gate::has_no_small_case(contender.candidate());
  if (!many) {
    measured.why_refused = why_launch_wrong(resident, kernel, plan).value_or("");
    return measured;
  }
  const SampledRows rows = launch_and_sample(resident, kernel, plan, rows_of_errors);
  measured.why_refused = rows.why_wrong().value_or("");
  if (measured.why_refused.empty() && !options_.errors.empty()) {
    measured.errors = row_errors(rows, contender.subject.problem, options_.errors);
  }
  return measured;
}

double GroupTimer::timed_ms(const Contender& contender) {
  look_for_interrupt();
  return timed_->time_ms(*contender.kernel, contender.subject.plan);
}

void GroupTimer::count(const Contender& contender, Measured& measured) {
  if (contender.kernel->timed_launch) {
    measured.why_no_counters = fmt::format(
        "{} runs in another process, where this one counts nothing", contender.kernel->name);
    return;
  }
  try {
    measured.counters = device_.count(options_.counters, [&] {
      timed_->resident().launch(*contender.kernel, contender.subject.plan);
    });
  } catch (const MachineError& error) {
    measured.why_no_counters = error.what();
  }
}

void GroupTimer::warm_up(std::vector<Racer>& racers) {
  const auto start = Clock::now();
  for (Racer& racer : racers) {
    look_for_interrupt();
    (void)take_library_note();
    const Contender& contender = *racer.contender;
    racer.measured->launches = timed_->launches(*contender.kernel, contender.subject.plan);
    racer.measured->library = take_library_note();
  }
  while (seconds_since(start) < options_.warm_up_s) {
    for (const Racer& racer : racers) {
      (void)timed_ms(*racer.contender);
      if (seconds_since(start) >= options_.warm_up_s) break;
    }
  }
}

Timing GroupTimer::timing(const std::vector<Racer>& racers, Spent& spent) {
  return {.time =
              [&](std::size_t i) {
                const Racer& racer = racers[i];
                const double ms = timed_ms(*racer.contender);
                spent.kernels += ms * racer.measured->launches * 1e-3;
                if (auto state = device_.state()) {
                  racer.measured->states.push_back(*std::move(state));
                }
                return ms;
              },
          .begin_round = [this] { timed_->change_values(); },
          .seed = options_.seed};
}

void GroupTimer::check_timed_answers(const Racer& racer, GroupTimes& result) {
  look_for_interrupt();
  const Contender& contender = *racer.contender;
  if (contender.kernel->role == KernelRole::limit) return;
  std::optional<std::string> why;
  try {
    why = timed_->why_timed_answers_wrong(*contender.kernel, contender.subject.plan);
  } catch (const MachineError& error) {
    why = error.what();
    if (is_lost(device_)) result.device_lost = error.what();
  }
  if (!why) return;
  *racer.measured = {};
  racer.measured->why_refused = *std::move(why);
}

std::size_t GroupTimer::halve(std::vector<Racer>& racers, std::size_t points, Spent& spent) {
  if (options_.keep >= 1 || points <= points_a_group) return points;
  std::size_t rounds = 1;  // as many as the heats need: 1, 2, 4, ...
  for (double left = static_cast<double>(points); left > points_a_group; left *= options_.keep) {
    rounds *= 2;
  }
  const auto order = race(points, timing(racers, spent),
                          {.finalists = points_a_group, .rounds = rounds, .keep = options_.keep});
  std::vector<Racer> left;
  for (const RaceTimes& one : order) {
    const Racer& racer = racers[one.contender];
    if (left.size() < points_a_group) {
      racer.measured->states.clear();  // timed again, beside the rivals
      left.push_back(racer);
    } else {
      racer.measured->left_race = true;
      racer.measured->times_ms = one.times;
    }
  }
  left.insert(left.end(), racers.begin() + static_cast<std::ptrdiff_t>(points), racers.end());
  racers = std::move(left);
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
  result.rivals.resize(group.rivals.size());
  std::vector<Racer> racers;
  const auto admit = [&](const std::vector<Contender>& contenders,
                         std::vector<Measured>& measured) {
    for (std::size_t i = 0; i < contenders.size() && result.device_lost.empty(); ++i) {
      look_for_interrupt();
      try {
        place(contenders[i]);
        measured[i] = verified(contenders[i], result.spent);
      } catch (const MachineError& error) {
        measured[i].why_refused = error.what();
        if (is_lost(device_)) result.device_lost = error.what();
      }
      if (measured[i].why_refused.empty()) racers.push_back({&contenders[i], &measured[i]});
    }
  };
  admit(group.points, result.points);
  std::size_t points = racers.size();
  admit(group.rivals, result.rivals);
  result.spent.verification = seconds_since(start) - result.spent.warm_up;
  const bool is_asked = points > 0 || std::ranges::any_of(group.rivals, &Contender::is_wanted);
  if (!result.device_lost.empty() || !is_asked || racers.empty()) return result;

  const auto before_warm_up = Clock::now();
  warm_up(racers);
  const auto throttled_before_ms = device_.throttled_ms();
  result.spent.warm_up += seconds_since(before_warm_up);

  const std::vector<Racer> all = racers;
  points = halve(racers, points, result.spent);
  if (points == 0) points = racers.size();  // only baselines have no record yet
  auto times = timed_rounds({.points = points,
                             .peers = racers.size() - points,
                             .repeats = options_.repeats,
                             .target = options_.target,
                             .is_over = [&] { return seconds_since(start) >= seconds; }},
                            timing(racers, result.spent));
  for (std::size_t i = 0; i < racers.size(); ++i) {
    racers[i].measured->times_ms = std::move(times[i]);
  }
  const auto throttled_ms = growth(throttled_before_ms, device_.throttled_ms());
  const auto before_check = Clock::now();
  for (const Racer& racer : all) {
    if (result.device_lost.empty()) check_timed_answers(racer, result);
  }
  result.spent.verification += seconds_since(before_check);
  if (!result.device_lost.empty()) return result;

  const auto before_counters = Clock::now();
  for (const Racer& racer : racers) {
    if (!racer.measured->why_refused.empty()) continue;
    racer.measured->throttled_ms = throttled_ms;
    if (!options_.counters.empty() && racer.contender->is_wanted) {
      count(*racer.contender, *racer.measured);
    }
  }
  result.spent.warm_up += seconds_since(before_counters);
  return result;
}

}  // namespace attest
