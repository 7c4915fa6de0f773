#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "cpu_reference/forward/bound_constants.hpp"
#include "cpu_reference/forward/error_paths.hpp"

// What roundings of a kind do on average: the constants of the error model (error_model.hpp).
namespace attest::error_model {

inline constexpr double u = 0x1p-24;
/// Variance of one rounding relative to its result, in units of the format's u^2.
inline constexpr double rounding = 0.541 / 3;
/// Mean of one truncation, in units of u.
inline constexpr double truncation = 0.721;

/// Declared relative errors up to this are taken for roundings, which scatter.
inline constexpr double largest_scattered = 4 * u;

inline double square(double x) {
  return x * x;
}

/// A sum of `terms` products S with sum of squares X: variance and drift of its error, from what a
/// walk to S does on average, and from the partial sums themselves. The larger one counts.
struct ChainModel {
  double per_sum = 0;    ///< variance per S^2
  double per_terms = 0;  ///< variance per X
  double per_path = 0;   ///< variance per sum of S_j^2, S_j the partial sums (error_paths.hpp)
  double of_sum = 0;     ///< drift per |S|: the truncated partial sums
  double of_cuts = 0;    ///< drift per largest term when all terms have one sign
  double of_path = 0;    ///< drift per sum of S_j
  double terms = 1;

  /// `is_even`: the terms are alike along the chain, so that partial sums grow evenly. Otherwise
  /// they may be as large as the last one from the start: the first keys can hold the weight.
  /// Where factors are in parts only the chain of hi and hi counts: beside it the others are small.
  ChainModel(const Accumulation& how, double products, double parts, bool is_even)
      : terms(products) {
    const bool is_fma = how.kind == Accumulation::Kind::fp32_fma;
    const double steps = is_fma ? products : std::ceil(products / how.fused_terms) + parts - 1;
    per_sum = rounding * square(u) * steps * (is_even ? 1.0 / 3 : 1);
    per_terms = rounding * square(u) * steps / 6;
    per_path = rounding * square(u);
    if (is_fma) return;
    // b + 1 terms cut at 2^-F of the largest, whose square is about S^2 / 3 + X / 4.
    const double cut = std::exp2(-how.fraction_bits);
    const double cuts = square(cut) * (how.fused_terms + 1) * steps / 12;
    per_sum += cuts / 3;
    per_terms += cuts / 4;
    // Partial sums wander about their mean, which grows evenly to S: the mean is a drift of S / 2 a
    // step, the sum of the wandering has a variance of steps^2 X / 12.
    of_sum = truncation * u * steps * (is_even ? 0.5 : 1);
    per_terms += square(truncation * u * steps) / 12;
    of_cuts = truncation / 2 * cut * (how.fused_terms + 1) * steps;
    // One step in b terms rounds, and cuts the accumulator with the terms.
    per_path = (per_path + square(cut) * (how.fused_terms + 1) / 12) / how.fused_terms;
    of_path = (truncation * u + cut) / how.fused_terms;
  }
  /// `count` roundings to nearest of partial sums that may be as large as the last one.
  void add_roundings(double count) { per_sum += rounding * square(u) * count; }
  /// Terms of both signs are cut towards zero from both sides: what is left is their imbalance.
  [[nodiscard]] double drift(double sum, double squares) const {
    if (of_sum == 0 || !(squares > 0)) return 0;
    const double imbalance = std::min(1.0, std::abs(sum) / std::sqrt(terms * squares));
    return of_sum * std::abs(sum) + of_cuts * imbalance * std::sqrt(square(sum) / 3 + squares / 4);
  }
};

/// Variances of a product, relative to it, from reading its factors in parts.
struct PartsModel {
  double factor = 0;   ///< variance by the rest of one factor
  double dropped = 0;  ///< variance by pairs of parts that are not multiplied

  explicit PartsModel(const Parts& parts) {
    const double rest = rest_of(parts, parts.count);
    factor = rounding * square(rest);
    // The largest of them: the last part of a factor and the second of the other.
    if (parts.count > 1) {
      dropped = square(rounding * rest_of(parts, 1) * rest_of(parts, parts.count - 1));
    }
  }
};

/// Constants of the error model that a PrecisionPlan gives a row with `keys` visible keys.
struct RowConstants {
  ChainModel score, value;
  double score_rounding = 0;     ///< variance per s^2
  double score_terms = 0;        ///< variance per X
  double argument = 0;           ///< variance per (max s - s)^2
  double exponential = 0;        ///< variance
  double weight = 0;             ///< variance of P's rounding
  double weight_absolute = 0;    ///< variance of P's rounding below its normal range
  double common = 0;             ///< variance of the relative error that a row of O shares
  double normaliser = 0;         ///< of that, what LSE has too
  double maximum = 0;            ///< variance of LSE per (max s)^2
  double scale_drift = 0;        ///< a relative error of the scale that all rows share
  double exponential_drift = 0;  ///< a relative error of all weights
  double maximum_drift = 0;      ///< of LSE per |max s|
  double common_drift = 0;       ///< of O per |O|
  double logarithm = 0;          ///< variance of LSE per (ln l)^2
  double logarithm_drift = 0;    ///< of LSE per |ln l|
  double value_rest = 0;         ///< drift of O per root of sum p^2 v^2
  double value_floor = 0;        ///< drift of O per largest |v|
  KeyWalk walk;                  ///< how the keys are summed
  double outer = 0;              ///< variance per square of a running sum that a chain is added to
  double rescale = 0;            ///< variance of a rescale that the keys before it share
  double part = 0;               ///< variance of the weight of a split
  double part_lse = 0;           ///< variance of the weight of a split per square of its LSE
  /// Drift of every log weight, and of each per max s - s: of exponentials of which nothing is
  /// known but a limit.
  double log_drift = 0, log_drift_slope = 0;

  RowConstants(const PrecisionPlan& p, const Problem& problem, double keys)
      : score(p.score, static_cast<double>(problem.head_dim), 1, true),
        value(p.value,
              p.promoted_keys > 0 ? std::min(keys, static_cast<double>(p.promoted_keys)) : keys,
              p.promoted_keys > 0 ? 1 : std::min<double>(static_cast<double>(p.blocks), keys),
              false) {
    const double one = rounding * square(u);
    const PartsModel score_parts(p.score_parts), value_parts(p.value_parts);
    if (p.score_parts.count > 1) score.add_roundings(1);
    if (p.promoted_keys > 0) value.add_roundings(std::min(static_cast<double>(p.blocks), keys) + 1);
    score_terms = 2 * score_parts.factor + score_parts.dropped;
    value.per_terms += value_parts.dropped;
    // All rows share the rest of a value, so what it does is no sample: four standard deviations.
    value_rest = 4 * std::sqrt(value_parts.factor);
    if (p.scale_after_dot) score_rounding = one;
    if (p.scale_folded_into_q) score_terms += one;
    const double exp_argument = p.exp.argument_error + u;
    // A reference that lags lengthens the arguments of all weights alike.
    const double lag = p.reference_lag * std::numbers::ln2;
    const double blocks = static_cast<double>(std::max<std::int64_t>(p.blocks, 1));
    const double splits = static_cast<double>(std::max<std::int64_t>(p.splits, 1));
    const double of_exp = p.exp.relative_error + lag * exp_argument;
    argument = one;
    exponential = one;
    if (p.exp.is_scattered) {
      argument += square(exp_argument) / 12;
      exponential += square(of_exp) / 12;
    } else {
      log_drift = of_exp * (std::min(blocks, keys) + splits);
      log_drift_slope = exp_argument;
    }
    if (p.weight_format != ElementType::fp32) {
      const ElementFormat& format = format_of(p.weight_format);
      weight = rounding * square(format.unit_roundoff);
      weight_absolute = square(format.min_subnormal / 2) / 3;
    }
    weight += value_parts.factor;
    // Below the normal range of the parts' format an error is absolute: of weights, the largest of
    // which is weight_scale, and of values, the largest of which is scaled_to at least.
    const double floor = part_floor(p.value_parts);
    weight_absolute += square(floor / p.weight_scale) / 3;
    value_floor = p.value_parts.scaled_to > 0 ? floor / p.value_parts.scaled_to : 0;
    const double moves = 1 + std::log2(blocks) + splits;
    const double chain = std::min(static_cast<double>(p.normaliser_chain), keys) + splits;
    normaliser = one * (chain + 2 * moves);
    // An error of a few roundoffs scatters; of a coarser division or logarithm only the limit is
    // known, and it may always err to one side.
    const bool is_normalised = p.rescale == Rescale::normalised_steps;
    const double divisions = is_normalised ? blocks : 1;
    const bool divides_coarsely = p.division_error > largest_scattered;
    common = normaliser + one * 2 * moves +
             square(divides_coarsely ? u : std::max(p.division_error, u)) / 3;
    if (divides_coarsely) common_drift = p.division_error * divisions;
    if (is_normalised) common += 4 * one * blocks;
    const bool takes_coarse_logs = p.log_error > largest_scattered;
    logarithm = square(takes_coarse_logs ? u : std::max(p.log_error, u)) / 3;
    if (takes_coarse_logs) logarithm_drift = p.log_error;
    // A constant that is rounded once errs alike in every row: log2(e) times the scale, ln 2. Taken
    // as half of what the declared worst case allows.
    const double of_scale = subnormal_scale_error(p, problem);
    scale_drift = p.exp.argument_error / 2 + of_scale;
    // The mean error of an exponential, as a part of its largest.
    exponential_drift = p.exp.is_scattered ? of_exp / 4 : 0;
    const bool is_fused = !p.scale_after_dot && !p.scale_folded_into_q;
    const bool is_base_2 = p.exp.argument_error > 0;
    if (is_fused || is_base_2) maximum = 3 * one;
    if (!is_fused && is_base_2) maximum_drift = 2 * u;
    if (p.lse == LseForm::log2) maximum_drift += of_scale;
    add_walk(p, keys);
  }

 private:
  void add_walk(const PrecisionPlan& p, double keys) {
    const double one = rounding * square(u);
    const auto share_of = [&](double count) {
      return static_cast<std::int64_t>(std::ceil(keys / std::max(1.0, std::min(count, keys))));
    };
    const bool is_split = p.splits > 1;
    walk.block = share_of(static_cast<double>(p.blocks));
    if (is_split) walk.part = walk.chain = share_of(static_cast<double>(p.splits));
    if (p.promoted_keys > 0) walk.chain = p.promoted_keys;
    // The accumulator is multiplied once a block, or multiplied and divided.
    const double roundings = p.rescale == Rescale::normalised_steps ? 4
                             : p.rescale == Rescale::none           ? 0
                                                                    : 1;
    value.per_path += one * roundings / static_cast<double>(walk.block);
    outer = one * 2;
    rescale = exponential + one;
    if (!is_split) return;
    part = exponential + one;
    if (p.merge == Merge::lse_pairs) part_lse = one * (p.lse == LseForm::log2 ? 4 : 1);
  }
};

}  // namespace attest::error_model
