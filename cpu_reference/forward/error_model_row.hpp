#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "core/operations/forward.hpp"
#include "cpu_reference/forward/error_constants.hpp"
#include "cpu_reference/forward/error_head.hpp"
#include "cpu_reference/forward/error_model.hpp"
#include "cpu_reference/forward/kept_keys.hpp"

// The errors of one row, from the roundings that error_constants.hpp has in numbers.
namespace attest::error_model {

/// Half the distance between neighbours of x in a format.
inline double half_ulp(const ElementFormat& format, double x) {
  const double magnitude = std::max(std::abs(x), format.min_normal);
  return std::ldexp(1.0, std::ilogb(magnitude) - format.significand_bits);
}

/// Models the errors of one row after the other.
class Modeller {
 public:
  Modeller(const Problem& problem, const PrecisionPlan& precision, const Answer& answer,
           const ErrorModelScope& scope)
      : problem_(problem), precision_(precision), answer_(answer), scope_(scope) {}

  /// True if the row is in scope; `row` is then filled.
  bool model(const Head& head, std::span<const float> query, RowErrorModel& row) {
    const KeyRange seen = head.kept.places_of(problem_.visible_range(row.b, row.n));
    const std::int64_t keys = seen.size();
    const double lse = answer_[forward::lse].value.at(row.b, row.h, row.n, 0);
    if (keys < 2 || !std::isfinite(answer_[forward::lse].bound.at(row.b, row.h, row.n, 0)))
      return false;
    for (const double bound : answer_[forward::o].bound.row(row.b, row.h, row.n)) {
      if (!std::isfinite(bound)) return false;
    }
    const Eigen::Map<const Row> q(query.data(), problem_.head_dim);
    s_ = problem_.scale * (q.matrix() * head.k.middleRows(seen.begin, keys).transpose()).array();
    x_ = square(static_cast<double>(problem_.scale)) *
         (q.square().matrix() * head.k2.middleRows(seen.begin, keys).transpose()).array();
    p_ = (s_ - static_cast<float>(lse)).exp();
    if (!is_regular()) return false;
    // Half an ulp of a sum of 1 to 2 is u, so a smaller weight is lost as a whole and one below 2 u
    // may double: each time to the same side.
    constexpr auto least_added = static_cast<float>(2 * u);
    lost_ = (p_ <= least_added).select(p_, 0.0F);
    const RowConstants c(precision_, problem_, static_cast<double>(keys));
    if (!log_errors(c, score_paths(q, head.k_by_dim.middleCols(seen.begin, keys)))) return false;
    weigh_parts(c, lse);
    model_columns(c, head, seen, row);
    model_directions(c, head, seen, row);
    model_lse(c, lse, row);
    return true;
  }

 private:
  /// The weights add to 1 in the precision of this model, and are many, spread and untied.
  bool is_regular() {
    const float total = p_.sum();
    if (!(std::abs(total - 1) < 0.02F)) return false;
    if (!(p_.square().sum() * static_cast<float>(scope_.least_effective_keys) <= 1)) return false;
    const float mean = (p_ * s_).sum();
    const double spread = std::sqrt(static_cast<double>((p_ * (s_ - mean).square()).sum()));
    const double roundoff = format_of(precision_.weight_format).unit_roundoff;
    if (!(spread >= scope_.least_score_spread * roundoff)) return false;
    if (!(static_cast<double>(s_.abs().maxCoeff()) <= scope_.largest_common_score * spread)) {
      return false;
    }
    // Scores this close are rounded alike: a small part of an ulp of P, or noise of fp32.
    const float close = static_cast<float>(std::max(
        roundoff > u ? roundoff / 64 : 0.0, 4 * u * static_cast<double>(s_.abs().maxCoeff())));
    order_.assign(s_.data(), s_.data() + s_.size());
    std::ranges::sort(order_);
    float tied = 0;
    const float largest = order_.back();
    for (std::size_t j = 0; j < order_.size(); ++j) {
      const bool below = j > 0 && order_[j] - order_[j - 1] <= close;
      const bool above = j + 1 < order_.size() && order_[j + 1] - order_[j] <= close;
      if (below || above) tied += std::exp(order_[j] - largest);
    }
    const float share_of_largest = p_.maxCoeff();
    return tied * share_of_largest <= static_cast<float>(scope_.largest_tied_share) * total;
  }

  /// Variances of the log weights: centred (shared by numerator and normaliser) and of P alone.
  /// `paths`: of the dot products, before they are scaled.
  bool log_errors(const RowConstants& c, const PathSums& paths) {
    const float top = s_.maxCoeff();
    const auto scale = std::abs(static_cast<double>(problem_.scale));
    const Row chain =
        (static_cast<float>(c.score.per_sum) * s_.square() +
         static_cast<float>(c.score.per_terms) * x_)
            .max(static_cast<float>(c.score.per_path * square(scale)) * paths.squares);
    centred_ = chain + static_cast<float>(c.score_rounding) * s_.square() +
               static_cast<float>(c.score_terms) * x_ +
               static_cast<float>(c.argument) * (top - s_).square() +
               static_cast<float>(c.exponential);
    // What truncation along the path adds to the common part that scale_drift stands for.
    const Row path_drift = static_cast<float>(c.score.of_path * scale) * paths.sums.abs() -
                           static_cast<float>(c.score.of_sum + c.score.of_cuts) * s_.abs();
    log_drift_ = path_drift.max(0.0F) + static_cast<float>(c.log_drift) +
                 static_cast<float>(c.log_drift_slope) * (top - s_);
    if (!((centred_ * p_).sum() <= square(scope_.largest_log_error))) return false;
    // A weight in P's subnormal range has an absolute error: relative to w = e^(s - max), or to p
    // itself when weights are divided before they are rounded.
    rounded_.setConstant(s_.size(), static_cast<float>(c.weight));
    if (c.weight > 0) {
      const double floor = c.weight_absolute;
      const bool divides = precision_.rescale == Rescale::none;
      const Row w = divides ? p_ : Row((s_ - top).exp());
      rounded_ = rounded_.max((static_cast<float>(std::sqrt(floor)) / w.max(1e-18F)).square());
    }
    if (precision_.sums_rounded_weights) {
      centred_ += rounded_;
      rounded_.setZero();
    }
    return true;
  }

  /// Variance of the weight that each split gets where the splits are merged.
  void weigh_parts(const RowConstants& c, double lse) {
    part_mass_.clear();
    part_variance_.clear();
    if (c.walk.part == 0) return;
    std::vector<double> part_lse;
    for (std::int64_t first = 0; first < p_.size(); first += c.walk.part) {
      const std::int64_t keys = std::min<std::int64_t>(c.walk.part, p_.size() - first);
      part_mass_.push_back(static_cast<double>(p_.segment(first, keys).sum()));
      part_lse.push_back(lse + std::log(part_mass_.back()));
    }
    const double top = *std::ranges::max_element(part_lse);
    for (const double own : part_lse) {
      const bool is_lost = !std::isfinite(own);
      part_variance_.push_back(
          is_lost ? 0 : c.part + c.part_lse * square(own) + c.argument * square(top - own));
    }
  }

  /// Variance of each column by errors that whole splits and all keys before a rescale share.
  [[nodiscard]] Row common_moves(const RowConstants& c, const ValuePaths& paths) const {
    Row variance = static_cast<float>(c.rescale) * paths.rescaled;
    for (std::size_t i = 0; i < part_variance_.size(); ++i) {
      variance += static_cast<float>(part_variance_[i]) *
                  paths.parts.row(static_cast<std::int64_t>(i)).array().square();
    }
    return variance;
  }

  void model_columns(const RowConstants& c, const Head& head, KeyRange keys, RowErrorModel& row) {
    const auto v2 = head.v2.middleRows(keys.begin, keys.size());
    const auto v = head.v.middleRows(keys.begin, keys.size());
    const auto exact = answer_[forward::o].value.row(row.b, row.h, row.n);
    const Row o_row = Eigen::Map<const Eigen::Array<double, 1, Eigen::Dynamic>>(
                          exact.data(), static_cast<std::int64_t>(exact.size()))
                          .cast<float>();
    const ValuePaths paths(c.walk, p_, s_, v, o_row);
    rescaled_mass_ = paths.rescaled_mass;
    moved_ = common_moves(c, paths);
    Row weight_drift = Row::Zero(o_row.size());
    if (log_drift_.maxCoeff() > 0) {
      for (std::int64_t j = 0; j < p_.size(); ++j) {
        weight_drift += p_(j) * log_drift_(j) * (v.row(j).array() - o_row).abs();
      }
    }
    if (lost_.maxCoeff() > 0) {
      weight_drift += (lost_.matrix() * v.cwiseAbs()).array() + lost_.sum() * o_row.abs();
    }
    const Row p2 = p_.square();
    const Row log_part = ((p2 * (centred_ + rounded_)).matrix() * v2).array();
    squares_ = (p2.matrix() * v2).array();
    const auto columns = static_cast<std::size_t>(problem_.output_dim());
    const ElementFormat& output = format_of(problem_.element_type);
    own_.assign(columns, 0);
    row.o_sd.assign(columns, 0);
    row.o_drift.assign(columns, 0);
    for (std::size_t i = 0; i < columns; ++i) {
      const auto column = static_cast<std::int64_t>(i);
      const double o = answer_[forward::o].value.at(row.b, row.h, row.n, column);
      const double terms = static_cast<double>(squares_(column));
      double path = c.value.per_path * static_cast<double>(paths.within.squares(column));
      if (c.walk.chain > 0) path += c.outer * static_cast<double>(paths.outer(column));
      own_[i] = std::max(c.value.per_sum * square(o) + c.value.per_terms * terms, path) +
                square(half_ulp(output, o)) / 3;
      const double variance =
          static_cast<double>(log_part(column) + moved_(column)) + c.common * square(o) + own_[i];
      const double sd = std::sqrt(variance);
      if (!(answer_[forward::o].own_error.at(row.b, row.h, row.n, column) <= sd / 16)) continue;
      if (!std::isfinite(sd)) continue;
      if (std::abs(o) >= output.max_finite / 2 || terms == 0) continue;
      row.o_sd[i] = sd;
      const double along_path = c.value.of_path * static_cast<double>(paths.within.sums(column));
      row.o_drift[i] = std::max(c.value.drift(o, terms), std::abs(along_path)) +
                       c.value_rest * std::sqrt(terms) + c.common_drift * std::abs(o) +
                       c.value_floor * head.largest_v + static_cast<double>(weight_drift(column));
    }
    row.shared_squares = shared_squares(head, keys, row);
  }

  [[nodiscard]] double shared_squares(const Head& head, KeyRange keys,
                                      const RowErrorModel& row) const {
    const auto columns = static_cast<std::int64_t>(row.o_sd.size());
    double least = std::numeric_limits<double>::infinity();  // unit in which fp32 holds all
    for (const double sd : row.o_sd) {
      if (sd > 0) least = std::min(least, sd);
    }
    Row weight = Row::Zero(columns), weighted_o = Row::Zero(columns);
    double o_squares = 0, moved = 0;
    for (std::int64_t i = 0; i < columns; ++i) {
      const double sd = row.o_sd[static_cast<std::size_t>(i)];
      if (!(sd > 0)) continue;
      const double o = answer_[forward::o].value.at(row.b, row.h, row.n, i);
      const double w = square(least / sd);
      weight(i) = static_cast<float>(w);
      weighted_o(i) = static_cast<float>(w * o);
      o_squares += w * square(o);
      moved += static_cast<double>(moved_(i)) / square(sd);
    }
    const Row v2 =
        (weight.matrix() * head.v2.middleRows(keys.begin, keys.size()).transpose()).array();
    const Row vo =
        (weighted_o.matrix() * head.v.middleRows(keys.begin, keys.size()).transpose()).array();
    const Row distance = (v2 - 2 * vo + static_cast<float>(o_squares)).max(0.0F);
    const Row unit_sd = p_ / static_cast<float>(least);
    const Row of_key = unit_sd.square() * (centred_ * distance + rounded_ * v2);
    const double sum = static_cast<double>(of_key.square().sum()) + square(moved);
    return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
  }

  void model_directions(const RowConstants& c, const Head& head, KeyRange keys,
                        RowErrorModel& row) {
    // dO / d ln(scale) = sum p s (v - O)
    const Row slope = ((p_ * s_).matrix() * head.v.middleRows(keys.begin, keys.size())).array();
    const float mean = (p_ * s_).sum();
    const std::size_t columns = row.o_sd.size();
    std::vector<double> o(columns), d(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      const auto column = static_cast<std::int64_t>(i);
      o[i] = answer_[forward::o].value.at(row.b, row.h, row.n, column);
      d[i] = static_cast<double>(slope(column)) - static_cast<double>(mean) * o[i];
    }
    double independent = 0;
    row.gain = direction(c, head, keys, row, o, o, independent);
    if (independent > 0) row.column_correlation = row.gain.variance / independent;
    row.temperature = direction(c, head, keys, row, d, o, independent);
    double steepness = 0;
    for (std::size_t i = 0; i < columns; ++i) steepness += row.temperature.along[i] * d[i];
    // Truncated sums are short by a common part, as if the scale were smaller.
    const double scale_drift = c.scale_drift + c.score.of_sum + c.score.of_cuts;
    row.temperature.drift += scale_drift * std::abs(steepness);
    double gain_slope = 0;
    for (std::size_t i = 0; i < columns; ++i) gain_slope += row.gain.along[i] * d[i];
    row.gain.drift += scale_drift * std::abs(gain_slope);
    // It moves every column its own way, and columns of small weights all the same way.
    for (std::size_t i = 0; i < columns; ++i) {
      row.o_drift[i] += (c.score.of_sum + c.score.of_cuts) * std::abs(d[i]);
    }
  }

  ErrorDirection direction(const RowConstants& c, const Head& head, KeyRange keys,
                           const RowErrorModel& row, const std::vector<double>& towards,
                           const std::vector<double>& o, double& independent) {
    const std::size_t columns = towards.size();
    ErrorDirection result;
    result.along.assign(columns, 0);
    Row y(static_cast<std::int64_t>(columns));
    // In units that fp32 holds.
    double unit = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      if (row.o_sd[i] > 0) unit = std::max(unit, std::abs(towards[i]) / square(row.o_sd[i]));
    }
    double level = 0, own = 0;
    // By |O|: sum of the steps along columns that are rounded alike. Columns of equal values
    // perform the same operations; those of one |O| are at least stored with one error.
    std::map<double, double> alike;
    independent = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const double along =
          row.o_sd[i] > 0 && unit > 0 ? towards[i] / square(row.o_sd[i]) / unit : 0;
      result.along[i] = along;
      y(static_cast<std::int64_t>(i)) = static_cast<float>(along);
      level += along * o[i];
      alike[std::abs(o[i])] += o[i] < 0 ? -along : along;
      independent += square(along * row.o_sd[i]);
      result.drift += std::abs(along) * row.o_drift[i];
    }
    for (std::size_t i = 0; i < columns; ++i) {
      // Every column for its share of those it is rounded alike with.
      own += std::abs(result.along[i] * alike[std::abs(o[i])]) * own_[i];
    }
    const Row t = (y.matrix() * head.v.middleRows(keys.begin, keys.size()).transpose()).array();
    const Row p2 = p_.square();
    const Row centred = (t - static_cast<float>(level)).square();
    const Matrix one_column = t.matrix().transpose();
    const ValuePaths paths(c.walk, p_, s_, one_column, Row::Constant(1, static_cast<float>(level)));
    result.variance =
        static_cast<double>((p2 * centred_ * centred + p2 * rounded_ * t.square()).sum() +
                            common_moves(c, paths)(0)) +
        c.common * square(level) + own;
    return result;
  }

  void model_lse(const RowConstants& c, double lse, RowErrorModel& row) {
    const double top = static_cast<double>(s_.maxCoeff());
    const double shared = static_cast<double>((p_.square() * centred_).sum());
    const double log_l = lse - top;
    double merged = 0;
    for (std::size_t i = 0; i < part_variance_.size(); ++i) {
      merged += part_variance_[i] * square(part_mass_[i]);
    }
    const double variance = shared + c.rescale * rescaled_mass_ + merged + c.normaliser +
                            c.maximum * square(top) + c.logarithm * square(log_l) +
                            square(half_ulp(format_of(ElementType::fp32), lse)) / 3;
    const double distance = static_cast<double>((p_ * (top - s_)).sum());
    double score_drift = 0;
    if (c.score.of_sum > 0) {
      for (std::int64_t j = 0; j < s_.size(); ++j) {
        score_drift += static_cast<double>(p_(j)) * c.score.drift(s_(j), x_(j));
      }
    }
    row.lse_sd = std::sqrt(variance);
    row.lse_drift = c.exponential_drift + c.scale_drift * distance +
                    c.maximum_drift * std::abs(top) + c.logarithm_drift * std::abs(log_l) +
                    score_drift + static_cast<double>((p_ * log_drift_).sum() + lost_.sum());
  }

  const Problem& problem_;
  const PrecisionPlan& precision_;
  const Answer& answer_;
  const ErrorModelScope& scope_;
  Row s_, x_, p_, centred_, rounded_, squares_;
  Row lost_;       ///< weights too small for a running sum to take up, 0 for others
  Row log_drift_;  ///< |mean error| of every log weight is at most this
  Row moved_;      ///< of every column, common_moves()
  double rescaled_mass_ = 0;
  std::vector<double> part_mass_, part_variance_;  ///< weight of each split; its variance
  std::vector<float> order_;
  std::vector<double> own_;  ///< variance that a column has for itself
};

}  // namespace attest::error_model
