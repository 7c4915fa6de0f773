#include "verify/judge/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/glob.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/compare.hpp"
#include "verify/judge/gradient_statistics.hpp"
#include "verify/judge/run.hpp"

namespace attest {
namespace {

constexpr std::uint64_t calibration_stream = 0x63616c;  // "cal": apart from all others

/// Captured activations are one family beside twenty random ones, and least like a model of errors:
/// one set in four has them.
const InputFamily& family_of(const Operation& operation, const CalibrationOptions& options,
                             const std::function<std::int64_t(std::int64_t)>& pick) {
  std::vector<const InputFamily*> random, captured;
  for (const InputFamily* one : families_of(operation)) {
    const InputFamily& family = *one;
    if (!matches_glob(family.name, options.families)) continue;
    (family.head_dims.empty() ? random : captured).push_back(&family);
  }
  if (random.empty() && captured.empty()) {
    throw InvalidInput(fmt::format("--family '{}' matches no input family; see attest list inputs",
                                   options.families));
  }
  const bool is_captured = random.empty() || (!captured.empty() && pick(4) == 0);
  const auto& families = is_captured ? captured : random;
  return *families[static_cast<std::size_t>(pick(static_cast<std::int64_t>(families.size())))];
}

/// A case with enough rows and keys for the statistics, or nothing when the kernel cannot run it.
std::optional<Case> draw_case(const KernelInfo& kernel, ElementType type,
                              const CalibrationOptions& options, std::uint64_t number) {
  std::uint64_t next = number << 8;
  const auto pick = [&](std::int64_t bound) {
    return random_below(options.seed, calibration_stream, next++, bound);
  };
  const InputFamily& family = family_of(*kernel.operation, options, pick);
  constexpr std::array<std::int64_t, 4> dims{32, 64, 64, 128};
  const std::int64_t shortest = std::min<std::int64_t>(24, options.largest_len);
  Case c;
  c.kernel = kernel.name;
  Problem& p = c.problem;
  p.operation = kernel.operation;
  p.query_heads = 2;
  p.kv_heads = 1 + pick(2);
  p.query_len = shortest + pick(options.largest_len - shortest + 1);
  p.key_len = shortest + pick(options.largest_len - shortest + 1);
  p.head_dim = dims[static_cast<std::size_t>(pick(4))];
  if (!family.head_dims.empty()) {
    p.head_dim = family.head_dims[static_cast<std::size_t>(
        pick(static_cast<std::int64_t>(family.head_dims.size())))];
  }
  p.mask =
      kernel.masks[static_cast<std::size_t>(pick(static_cast<std::int64_t>(kernel.masks.size())))];
  p.element_type = type;
  p.scale = default_scale(p.head_dim);
  if (family.unsupported && family.unsupported(p)) return std::nullopt;
  c.inputs = {.family = family.name, .seed = random_bits(options.seed, calibration_stream, next++)};
  if (!family.magnitudes.empty()) {
    c.inputs.magnitude = family.magnitudes[static_cast<std::size_t>(
        pick(static_cast<std::int64_t>(family.magnitudes.size())))];
  }
  const std::vector<Plan> plans = kernel.plans(p);
  if (plans.empty()) return std::nullopt;
  c.plan = plans[static_cast<std::size_t>(pick(static_cast<std::int64_t>(plans.size())))];
  if (why_unsupported(kernel, p, c.plan)) return std::nullopt;
  return c;
}

/// One value for each of statistics_of(): nothing where it does not apply.
std::vector<std::optional<double>> values_of(Run& run) {
  std::vector<std::optional<double>> values;
  if (run.problem().operation == &backward_operation) {
    for (const auto& deviation : deviations_of(run)) {
      values.push_back(deviation ? std::optional(deviation->value) : std::nullopt);
    }
    return values;
  }
  const Case& c = run.the_case();
  const bool has_o =
      is_modelled(run.kernel().precision(c.problem, c.plan).as<PrecisionPlan>(), c.problem, c.plan);
  const StatisticValues found = run.statistics();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool is_asked = all_statistics()[i].tensor == "LSE" || has_o;
    values.push_back(found[i].applies && is_asked ? std::optional(found[i].value) : std::nullopt);
  }
  return values;
}

}  // namespace

double StatisticDistribution::quantile(double share) const {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::llround(share * last))];
}

std::vector<StatisticDistribution> statistics_of(const Operation& operation) {
  std::vector<StatisticDistribution> all;
  if (&operation == &forward_operation) {
    for (const StatisticInfo& info : all_statistics()) {
      all.push_back({.name = info.name, .threshold = info.threshold});
    }
  } else if (&operation == &backward_operation) {
    for (const GradientStatisticInfo& info : all_gradient_statistics()) {
      all.push_back({.name = info.name, .threshold = most_gradient_deviations});
    }
  }
  return all;
}

Calibration calibrate(const KernelInfo& kernel, ElementType element_type, Device& device,
                      const CalibrationOptions& options, const std::function<void()>& on_set) {
  Calibration result;
  result.kernel = &kernel;
  result.element_type = element_type;
  result.statistics = statistics_of(*kernel.operation);
  const std::int64_t most_draws = 20 * options.sets;
  for (std::int64_t number = 0; number < most_draws && result.sets < options.sets; ++number) {
    const auto c = draw_case(kernel, element_type, options, static_cast<std::uint64_t>(number));
    if (!c) continue;
    ++result.sets;
    Run run(kernel, *c, device);
    const std::vector<std::optional<double>> values = values_of(run);
    bool is_judged = false, is_alarmed = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      StatisticDistribution& distribution = result.statistics[i];
      is_judged = true;
      distribution.values.push_back(*values[i]);
      if (within(distribution.threshold, *values[i])) continue;
      is_alarmed = true;
      ++distribution.alarms;
    }
    if (is_judged) ++result.sets_judged;
    if (is_alarmed) ++result.sets_alarmed;
    if (on_set) on_set();
  }
  for (StatisticDistribution& distribution : result.statistics) {
    std::ranges::sort(distribution.values,
                      [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
  }
  return result;
}

double upper_rate(std::int64_t alarms, std::int64_t sets) {
  if (alarms >= sets) return 1;
  // Clopper and Pearson, one-sided.
  return boost::math::ibeta_inv(static_cast<double>(alarms + 1), static_cast<double>(sets - alarms),
                                0.95);
}

std::vector<Measurement> measurements_of(const Calibration& calibration) {
  std::vector<Measurement> list{
      {"sets", static_cast<double>(calibration.sets), "1"},
      {"sets_judged", static_cast<double>(calibration.sets_judged), "1"},
      {"sets_with_an_alarm", static_cast<double>(calibration.sets_alarmed), "1"},
      {"false_alarm_rate_at_most", upper_rate(calibration.sets_alarmed, calibration.sets_judged),
       "1"}};
  for (const StatisticDistribution& found : calibration.statistics) {
    const auto add = [&](std::string_view what, double value) {
      list.push_back({fmt::format("{}.{}", found.name, what), value, "1"});
    };
    add("sets", static_cast<double>(found.values.size()));
    add("median", found.quantile(0.5));
    add("p99", found.quantile(0.99));
    add("largest", found.quantile(1));
    add("threshold", found.threshold);
    add("alarms", static_cast<double>(found.alarms));
  }
  return list;
}

}  // namespace attest
