#include "verify/judge/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/distribution.hpp"
#include "core/attention/fused_roundings.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Rows whose columns err together say less than their number of columns.
bool has_independent_columns(const RowErrorModel& row) {
  constexpr double largest_correlation = 4;
  constexpr std::int64_t least_columns = 16;
  return row.column_correlation <= largest_correlation &&
         static_cast<std::int64_t>(row.o_sd.size()) >= least_columns;
}

std::int64_t modelled_columns(const RowErrorModel& row) {
  return std::ranges::count_if(row.o_sd, [](double sd) { return sd > 0; });
}

/// error / sd with up to `drift` taken off its size; its sign stays. NaN stays NaN.
double standardised(double error, double drift, double sd) {
  const double size = std::abs(error);
  return std::copysign(size <= drift ? 0.0 : size - drift, error) / sd;
}

/// Keeps the largest, and a NaN for good.
struct Largest {
  double value = 0;
  Shape at{};
  void add(double candidate, const Shape& where) {
    if (std::isnan(value) || candidate <= value) return;
    value = candidate;
    at = where;
  }
};

/// Sum of squares of `count` standard normal numbers, as a number of standard deviations above its
/// mean. `shared`: what dependence adds to half its variance.
double excess(double sum_of_squares, double count, double shared = 0) {
  return count > 0 ? (sum_of_squares - count) / std::sqrt(2 * (count + shared)) : 0;
}

/// Errors along one direction of every row.
class DirectionSum {
 public:
  /// Returns the row's own error in standard deviations.
  double add(const ErrorDirection& direction, double error_along) {
    if (!(direction.variance > 0) || !(direction.variance < infinity)) return 0;
    // Rows are weighed by their information about a common factor: y is 1 / variance already.
    const double scale = unit_of(direction);
    sum_ += error_along * scale;
    drift_ += direction.drift * scale;
    variance_ += direction.variance * scale * scale;
    return standardised(error_along, direction.drift, std::sqrt(direction.variance));
  }
  [[nodiscard]] double score() const {
    return variance_ > 0 ? std::abs(standardised(sum_, drift_, std::sqrt(variance_))) : 0;
  }

 private:
  /// Rows count alike.
  static double unit_of(const ErrorDirection& direction) {
    return 1 / std::sqrt(direction.variance);
  }
  double sum_ = 0, drift_ = 0, variance_ = 0;
};

double dot(const std::vector<double>& along, const std::vector<double>& errors) {
  double sum = 0;
  for (std::size_t i = 0; i < along.size(); ++i) {
    if (along[i] != 0) sum += along[i] * errors[i];
  }
  return sum;
}

/// Everything that is summed over the rows of one launch.
class Sums {
 public:
  void add_row(const RowErrorModel& row, const Answer& answer, const Outputs& outputs) {
    add_output(row, answer, outputs);
    const double error = static_cast<double>(outputs[forward::lse].at(row.b, row.h, row.n, 0)) -
                         answer[forward::lse].value.at(row.b, row.h, row.n, 0);
    const double z = standardised(error, row.lse_drift, row.lse_sd);
    lse_largest_.add(std::abs(z), {row.b, row.h, row.n, 0});
    lse_squares_ += z * z;
    lse_sum_ += z;
    ++rows_;
  }

  [[nodiscard]] StatisticValues values() const {
    StatisticValues values;
    const auto set = [&](Statistic statistic, double value, const Shape& at = {}) {
      values[static_cast<std::size_t>(statistic)] = {.applies = false, .value = value, .worst = at};
    };
    set(Statistic::o_largest, largest_.value, largest_.at);
    set(Statistic::o_row_rms, row_rms_.value, row_rms_.at);
    set(Statistic::o_rms, excess(squares_, elements_, shared_));
    set(Statistic::o_gain, gain_.score());
    set(Statistic::o_row_gain, excess(gain_squares_, rows_));
    set(Statistic::o_temperature, temperature_.score());
    set(Statistic::o_bias,
        sign_squares_ > 0 ? std::abs(sign_sum_) / std::sqrt(sign_squares_) : sign_squares_);
    set(Statistic::lse_largest, lse_largest_.value, lse_largest_.at);
    set(Statistic::lse_rms, excess(lse_squares_, rows_));
    set(Statistic::lse_bias, rows_ > 0 ? std::abs(lse_sum_) / std::sqrt(rows_) : 0);
    return values;
  }

 private:
  void add_output(const RowErrorModel& row, const Answer& answer, const Outputs& outputs) {
    const std::size_t columns = row.o_sd.size();
    std::vector<double> errors(columns, 0);
    double squares = 0, signs = 0, count = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      if (!(row.o_sd[i] > 0)) continue;
      const auto column = static_cast<std::int64_t>(i);
      const Shape at{row.b, row.h, row.n, column};
      errors[i] = static_cast<double>(outputs[forward::o].at(row.b, row.h, row.n, column)) -
                  answer[forward::o].value.at(row.b, row.h, row.n, column);
      const double z = standardised(errors[i], row.o_drift[i], row.o_sd[i]);
      largest_.add(std::abs(z), at);
      squares += z * z;
      signs += z;
      count += 1;
    }
    const double along = gain_.add(row.gain, dot(row.gain.along, errors));
    gain_squares_ += along * along;
    temperature_.add(row.temperature, dot(row.temperature.along, errors));
    sign_sum_ += signs;
    sign_squares_ += signs * signs;
    if (!has_independent_columns(row)) return;
    row_rms_.add(excess(squares, count, row.shared_squares), {row.b, row.h, row.n, 0});
    squares_ += squares;
    elements_ += count;
    shared_ += row.shared_squares;
  }

  double rows_ = 0, elements_ = 0, shared_ = 0;
  Largest largest_, row_rms_, lse_largest_;
  double squares_ = 0, gain_squares_ = 0, sign_sum_ = 0, sign_squares_ = 0;
  double lse_squares_ = 0, lse_sum_ = 0;
  DirectionSum gain_, temperature_;
};

}  // namespace

const StatisticInfo& info_of(Statistic statistic) {
  return all_statistics()[static_cast<std::size_t>(statistic)];
}

const std::array<StatisticInfo, statistic_count>& all_statistics() {
  static const std::array<StatisticInfo, statistic_count> table{{
      {Statistic::o_largest, "o_largest_deviation", "O", 8, 4, 64},
      {Statistic::o_row_rms, "o_row_rms", "O", 12, 4, 64},
      {Statistic::o_rms, "o_rms", "O", 8, 4, 64},
      {Statistic::o_gain, "o_gain", "O", 6, 4, 64},
      {Statistic::o_row_gain, "o_row_gain", "O", 10, 16, 64},
      {Statistic::o_temperature, "o_temperature", "O", 6, 4, 64},
      {Statistic::o_bias, "o_bias", "O", 6.5, 48, 64},
      {Statistic::lse_largest, "lse_largest_deviation", "LSE", 6, 4, 0},
      {Statistic::lse_rms, "lse_rms", "LSE", 8, 16, 0},
      {Statistic::lse_bias, "lse_bias", "LSE", 7, 16, 0},
  }};
  return table;
}

bool is_modelled(const PrecisionPlan& precision, const Problem& problem, const Plan& plan) {
  const bool sums_keys_apart =
      has_unknown_order(precision, problem) || plan.distribution == Distribution::stripe;
  if (precision.weight_format == ElementType::fp32 && sums_keys_apart) return false;
  return precision.splits <= 1 || precision.partial_format == ElementType::fp32;
}

bool has_enough(Statistic statistic, const std::vector<RowErrorModel>& models) {
  const StatisticInfo& info = info_of(statistic);
  const bool needs_columns = statistic == Statistic::o_row_rms || statistic == Statistic::o_rms;
  std::int64_t rows = 0, elements = 0;
  for (const RowErrorModel& row : models) {
    if (needs_columns && !has_independent_columns(row)) continue;
    ++rows;
    elements += modelled_columns(row);
  }
  return rows >= info.least_rows && elements >= info.least_elements;
}

StatisticValues statistics_of(const std::vector<RowErrorModel>& models, const Answer& answer,
                              const Outputs& outputs) {
  Sums sums;
  for (const RowErrorModel& row : models) sums.add_row(row, answer, outputs);
  StatisticValues values = sums.values();
  for (const StatisticInfo& info : all_statistics()) {
    values[static_cast<std::size_t>(info.statistic)].applies = has_enough(info.statistic, models);
  }
  return values;
}

}  // namespace attest
