#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/attention/tensor_list.hpp"
#include "cpu_reference/forward/error_model.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {

/// Statistics of the errors of one launch, in units of the modelled standard deviation
/// (error_model.hpp). z is an error over its standard deviation, after the allowed drift was taken
/// off its size.
enum class Statistic {
  o_largest,      ///< max |z| of O
  o_row_rms,      ///< largest excess of a row: (sum z^2 - d) / sqrt(2 d)
  o_rms,          ///< excess over all elements
  o_gain,         ///< all errors along O: is O too short or too long?
  o_row_gain,     ///< excess of each row's error along O: is its normaliser right?
  o_temperature,  ///< all errors along dO / d ln(scale): is the scale right?
  o_bias,         ///< sign of the errors, by Student's t over the rows
  lse_largest,    ///< max |z| of LSE
  lse_rms,        ///< excess over all rows
  lse_bias        ///< sum of z over sqrt(rows)
};
inline constexpr std::size_t statistic_count = 10;

struct StatisticInfo {
  Statistic statistic;
  std::string_view name;
  std::string_view tensor;                  ///< `O` or `LSE`
  double threshold;                         ///< a correct kernel stays at or below
  std::int64_t least_rows, least_elements;  ///< fewer in scope: nothing is claimed
};
/// All statistics, in the order of Statistic. See verify/README.md.
[[nodiscard]] const std::array<StatisticInfo, statistic_count>& all_statistics();
[[nodiscard]] const StatisticInfo& info_of(Statistic statistic);

struct StatisticValue {
  bool applies = false;  ///< enough rows and elements are in scope
  double value = 0;      ///< NaN if an output in scope is NaN
  Shape worst{};         ///< where there is one element or row: the largest, the row
};
using StatisticValues = std::array<StatisticValue, statistic_count>;

/// True if the model has all roundings of O under these. It has none of the partial outputs that
/// splits leave behind in 16 bits. Values that alternate have large partial sums where every second
/// key is summed apart, as vector units do and ranks with stripes of the keys: with fp32 weights
/// that is most of the error.
[[nodiscard]] bool is_modelled(const PrecisionPlan& precision, const Problem& problem,
                               const Plan& plan);

/// True if the model claims enough for this statistic, which is decided without looking at an
/// output.
[[nodiscard]] bool has_enough(Statistic statistic, const std::vector<RowErrorModel>& models);

[[nodiscard]] StatisticValues statistics_of(const std::vector<RowErrorModel>& models,
                                            const Answer& answer, const Outputs& outputs);

}  // namespace attest
