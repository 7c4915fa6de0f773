#include "verify/judge/gradient_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "cpu_reference/backward/oracle.hpp"
#include "cpu_reference/device_reference.hpp"

namespace attest {
namespace {

const GradientStatisticInfo& info_of(GradientStatistic statistic) {
  return all_gradient_statistics()[static_cast<std::size_t>(statistic)];
}

BackwardRoundings in_fp32(BackwardRoundings how) {
  how.weight_format = how.dscore_format = how.output = ElementType::fp32;
  return how;
}

/// Largest variance of the rounding of x to the format, which is uniform between neighbours.
/// `factor` multiplies x before it is rounded.
double variance(ElementType type, double x, double factor = 1) {
  const StoredRounding rounding = stored_rounding(format_of(type));
  const double absolute = factor == 0 ? 0 : rounding.absolute / factor;
  return (rounding.relative * rounding.relative * x * x + absolute * absolute) / 3;
}

template <class Number>
double product(std::span<const double> x, std::span<const Number> y) {
  double sum = 0;
  for (std::size_t c = 0; c < x.size(); ++c) sum += x[c] * static_cast<double>(y[c]);
  return sum;
}

/// One launch on inputs of a family, and what it owes as far as it rounds in fp32.
struct JudgedLaunch {
  Inputs inputs;
  Launch launch;
  BackwardRoundings how;
  Answer in_fp32;
};

JudgedLaunch launch_on_family(Run& run, const GradientStatisticInfo& info) {
  const Problem& problem = run.problem();
  Inputs inputs = make_inputs(problem, {.family = std::string(info.family),
                                        .seed = run.the_case().inputs.seed,
                                        .magnitude = info.magnitude});
  Launch launch = run.launch(run.the_case(), inputs);
  const auto how = run.kernel().precision(problem, run.the_case().plan).as<BackwardRoundings>();
  const InPhase phase(run.clock(), Phase::reference);
  Answer answer = best_answer(problem, inputs, in_fp32(how));
  return {std::move(inputs), std::move(launch), how, std::move(answer)};
}

double dscore_variance(const BackwardRoundings& how, const Problem& problem,
                       const GradientPair<double>& pair) {
  const double of_dscore =
      variance(how.dscore_format, pair.tau, how.scales_dscore ? std::abs(problem.scale) : 1);
  if (!how.dscore_of_rounded_weights) return of_dscore;
  return of_dscore + variance(how.weight_format, pair.p) * pair.r * pair.r * pair.chi * pair.chi;
}

/// Sum of errors that roundings to 16 bits lead to.
struct ErrorSum {
  double variance = 0;   ///< of those that are independent of each other
  double one_sided = 0;  ///< most that the others may add up to
};

/// True if one key has nearly all the weight of its row. Rows of which that is true round the same
/// number, 1 over the share that dropout keeps, and all err alike.
bool is_only_weight(ElementType format, double p) {
  constexpr double steps = 8;
  return 1 - p < steps * 2 * stored_rounding(format_of(format)).relative;
}

/// Errors of a gradient times the exact gradient, summed.
ErrorSum errors_along(OutputIndex output, const Problem& problem, const JudgedLaunch& judged) {
  const Tensor<double>& gradient = judged.in_fp32[output].value;
  const double factor = output == backward::dv ? 1 : problem.scale;
  ErrorSum sum;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const std::int64_t kv_head = problem.kv_head_of(h);
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const auto row = given_row<double>(judged.inputs, b, h, n);
        for (const std::int64_t key : forward::keys_of_row(problem, judged.inputs, b, h, n)) {
          const auto pair = gradient_pair(problem, judged.inputs, b, h, n, key, row);
          double along = 0, of_rounding = dscore_variance(judged.how, problem, pair);
          if (output == backward::dq) {
            along = product(gradient.row(b, h, n), judged.inputs[backward::k].row(b, kv_head, key));
          } else if (output == backward::dk) {
            along = product(gradient.row(b, kv_head, key), judged.inputs[backward::q].row(b, h, n));
          } else {
            along =
                product(gradient.row(b, kv_head, key), judged.inputs[backward::d_o].row(b, h, n));
            of_rounding = variance(judged.how.weight_format, pair.p * pair.kept);
            if (is_only_weight(judged.how.weight_format, pair.p)) {
              sum.one_sided += std::abs(along) * std::sqrt(3 * of_rounding);
              continue;
            }
          }
          sum.variance += factor * factor * along * along * of_rounding;
        }
      }
    }
  }
  for (const double x : gradient.values()) sum.variance += x * x * variance(judged.how.output, x);
  return sum;
}

/// Distance of an error beyond what may be one-sided, in standard deviations; below 0 where it
/// stays within.
double deviations(double error, double drift, double sd) {
  const double beyond = std::abs(error) - drift;
  return beyond == 0 ? 0 : beyond / sd;
}

GradientDeviation gain_of(Run& run, const GradientStatisticInfo& info, const JudgedLaunch& judged) {
  const OutputAnswer& answer = judged.in_fp32[info.output];
  double error = 0, drift = 0, length = 0;
  for (std::size_t i = 0; i < answer.value.values().size(); ++i) {
    const double x = answer.value.values()[i], bound = answer.bound.values()[i];
    const double got = judged.launch.outputs[info.output].values()[i];
    if (!std::isfinite(bound) || !std::isfinite(got)) return {};
    error += (got - x) * x;
    drift += bound * std::abs(x);
    length += x * x;
  }
  if (length == 0) return {};
  const ErrorSum along = errors_along(info.output, run.problem(), judged);
  drift += along.one_sided;
  const double sd = std::sqrt(along.variance);
  const double allowed = drift + most_gradient_deviations * sd;
  const double value = deviations(error, drift, sd);
  return {value,
          {.got = error / length,
           .want = 0,
           .bound = allowed / length,
           .ratio = std::max(0.0, value) / most_gradient_deviations},
          fmt::format("on N(0, 1), {} is {:.3g} times as long as it is to be, a correct kernel "
                      "stays within {:.3g} of 1: a wrong scale, or numbers cut instead of rounded",
                      backward_operation[info.output].label, 1 + error / length, allowed / length)};
}

/// A row of dQ and its mean key: what its roundings add up to there, and what it erred by.
struct AlongMeanKey {
  double error = 0, drift = 0, variance = 0;
};

/// Error of a row along its mean key. Nothing where few keys weigh: their dS are nearly the same
/// number, and so are its roundings.
AlongMeanKey along_mean_key(const Problem& problem, const JudgedLaunch& judged, std::int64_t b,
                            std::int64_t h, std::int64_t n) {
  constexpr double least_effective_keys = 8;  // as in ErrorModelScope
  const Tensor<float>& k = judged.inputs[backward::k];
  const std::int64_t kv_head = problem.kv_head_of(h);
  const std::vector<std::int64_t> keys = forward::keys_of_row(problem, judged.inputs, b, h, n);
  const auto row = given_row<double>(judged.inputs, b, h, n);
  std::vector<double> variances, mean(static_cast<std::size_t>(problem.head_dim), 0.0);
  double mass = 0, squares = 0;
  for (const std::int64_t key : keys) {
    const auto pair = gradient_pair(problem, judged.inputs, b, h, n, key, row);
    variances.push_back(dscore_variance(judged.how, problem, pair));
    mass += pair.p;
    squares += pair.p * pair.p;
    const auto of_key = k.row(b, kv_head, key);
    for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += pair.p * pair.chi * of_key[c];
  }
  if (!(mass * mass >= least_effective_keys * squares)) return {};
  AlongMeanKey found;
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const double along = problem.scale * product<float>(mean, k.row(b, kv_head, keys[j]));
    found.variance += along * along * variances[j];
  }
  const OutputAnswer& dq = judged.in_fp32[backward::dq];
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const auto column = static_cast<std::int64_t>(c);
    const double x = dq.value.at(b, h, n, column);
    found.error += mean[c] * (judged.launch.outputs[backward::dq].at(b, h, n, column) - x);
    found.drift += std::abs(mean[c]) * dq.bound.at(b, h, n, column);
    found.variance += mean[c] * mean[c] * variance(judged.how.output, x);
  }
  return found;
}

/// Sums of many uniform numbers are sub-Gaussian, so that of `count` such squares, each in units of
/// its variance, a sum beyond count + 2 sqrt(count t) + 2 t has a chance below e^-t [Hsu, Kakade,
/// Zhang 2012]. Returns sqrt(2 t): as many standard deviations of one number are as unlikely. Below
/// 0 where the sum is less than expected.
double deviations_of_squares(double sum, double count) {
  return (std::sqrt(std::max(0.0, 2 * sum - count)) - std::sqrt(count)) / std::sqrt(2.0);
}

GradientDeviation mean_key_of(Run& run, const JudgedLaunch& judged) {
  const Problem& problem = run.problem();
  double squares = 0, count = 0, largest = 0;
  Shape at{};
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const AlongMeanKey row = along_mean_key(problem, judged, b, h, n);
        const bool is_decided = std::isfinite(row.error) && std::isfinite(row.drift);
        if (!is_decided || !(row.variance > 0)) continue;
        const double z = std::max(0.0, deviations(row.error, row.drift, std::sqrt(row.variance)));
        squares += z * z;
        count += 1;
        if (z <= largest) continue;
        largest = z;
        at = {b, h, n, 0};
      }
    }
  }
  if (count == 0) return {};
  const double value = deviations_of_squares(squares, count);
  return {value,
          {.index = at,
           .got = value,
           .want = 0,
           .bound = most_gradient_deviations,
           .ratio = std::max(0.0, value) / most_gradient_deviations},
          fmt::format("on keys and values with means, the errors of dQ along the rows' mean keys "
                      "have {:.3g} times the mean square of their roundings, over {} rows: a delta "
                      "of few bits",
                      squares / count, count)};
}

GradientDeviation deviation_in(Run& run, const GradientStatisticInfo& info,
                               const JudgedLaunch& judged) {
  return info.statistic == GradientStatistic::dq_along_mean_key ? mean_key_of(run, judged)
                                                                : gain_of(run, info, judged);
}

}  // namespace

const std::array<GradientStatisticInfo, gradient_statistic_count>& all_gradient_statistics() {
  // With means of 3 a delta is large and all keys of a row lie along one.
  static const std::array<GradientStatisticInfo, gradient_statistic_count> table{
      {{GradientStatistic::dq_gain, "dq_gain", backward::dq, "normal", 1},
       {GradientStatistic::dk_gain, "dk_gain", backward::dk, "normal", 1},
       {GradientStatistic::dv_gain, "dv_gain", backward::dv, "normal", 1},
       {GradientStatistic::dq_along_mean_key, "dq_along_mean_key", backward::dq, "gradient_mean_kv",
        3}}};
  return table;
}

/// Weights that lie within some ulp of each other are rounded alike: logits must spread.
bool is_modelled(const Run& run, GradientStatistic statistic) {
  constexpr double least_spread = 0.5;
  const Problem& problem = run.problem();
  const double spread = std::abs(problem.scale) * std::sqrt(static_cast<double>(problem.head_dim));
  const bool is_capped = problem.softcap > 0 && problem.softcap < 2 * least_spread;
  return run.kernel().gives(info_of(statistic).output) &&
         problem.element_type != ElementType::fp32 && spread >= least_spread && !is_capped;
}

GradientDeviation deviation_of(Run& run, GradientStatistic statistic) {
  const GradientStatisticInfo& info = info_of(statistic);
  return deviation_in(run, info, launch_on_family(run, info));
}

std::vector<std::optional<GradientDeviation>> deviations_of(Run& run) {
  std::map<std::string_view, JudgedLaunch> launches;
  std::vector<std::optional<GradientDeviation>> found;
  for (const GradientStatisticInfo& info : all_gradient_statistics()) {
    found.emplace_back();
    if (!is_modelled(run, info.statistic)) continue;
    auto launch = launches.find(info.family);
    if (launch == launches.end()) {
      launch = launches.emplace(info.family, launch_on_family(run, info)).first;
    }
    found.back() = deviation_in(run, info, launch->second);
  }
  return found;
}

}  // namespace attest
