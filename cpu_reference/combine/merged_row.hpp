#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace attest {

/// The exact merge of one row's partial results.
template <class Number>
struct MergedRow {
  std::vector<Number> o;  ///< sum_p exp(lse_p - LSE) o_p, one element a column
  Number lse;             ///< ln sum_p exp(lse_p), natural
};

/// The definition, for `lse` [parts] and `o` [parts, columns], o.size() == lse.size() * columns. A
/// part with lse -infinity weighs nothing, whatever its o holds; without another O is 0 and LSE
/// -infinity. A NaN or infinity in the row otherwise makes all of O and LSE NaN. Number: double,
/// whose own error is about parts times 2^-50 of sum_p exp(lse_p - LSE) |o_p|, or a multiprecision
/// type.
template <class Number>
[[nodiscard]] MergedRow<Number> merged_row(std::span<const float> lse, std::span<const float> o,
                                           std::size_t columns) {
  using std::exp;
  using std::log;
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  MergedRow<Number> row{std::vector<Number>(columns, Number(0)),
                        -std::numeric_limits<Number>::infinity()};
  bool is_finite = true;
  float maximum = nothing;
  for (std::size_t p = 0; p < lse.size(); ++p) {
    if (lse[p] == nothing) continue;
    is_finite = is_finite && std::isfinite(lse[p]) &&
                std::ranges::all_of(o.subspan(p * columns, columns),
                                    [](float x) { return std::isfinite(x); });
    maximum = std::max(maximum, lse[p]);
  }
  if (!is_finite) {
    row.lse = std::numeric_limits<Number>::quiet_NaN();
    row.o.assign(columns, row.lse);
    return row;
  }
  if (maximum == nothing) return row;
  Number sum = 0;
  for (std::size_t p = 0; p < lse.size(); ++p) {
    if (lse[p] == nothing) continue;
    const Number weight = exp(Number(Number(lse[p]) - Number(maximum)));
    sum += weight;
    for (std::size_t c = 0; c < columns; ++c) row.o[c] += weight * Number(o[p * columns + c]);
  }
  for (Number& element : row.o) element /= sum;
  row.lse = Number(maximum) + log(sum);
  return row;
}

}  // namespace attest
