#pragma once

#include <algorithm>
#include <cmath>

#include "core/base/host_device.hpp"
#include "cpu_reference/forward/epilogue.hpp"
#include "cpu_reference/forward/reference_f64_rows.hpp"

namespace attest {

// What the double references on the CPU and on a GPU share besides error_bound.hpp: terms of single
// keys, and the bound of a single element once its sums are known.

/// Below, e^h - 1 and e^-h are summed as series: no cancellation, and the compiler can vectorise
/// them.
inline constexpr double short_series = 0x1p-5;

/// e^h - 1 for 0 <= h < short_series, relative error below h^6 / 5040.
ATTEST_HOST_DEVICE inline double small_growth(double h) {
  return h * (1 + h / 2 * (1 + h / 3 * (1 + h / 4 * (1 + h / 5 * (1 + h / 6)))));
}

/// A lower bound of e^-h for 0 <= h < short_series, short of it by at most h^4 / 24.
ATTEST_HOST_DEVICE inline double small_decay(double h) {
  return 1 - h * (1 - h / 2 * (1 - h / 3));
}

/// e^log_p e^a (e^b - 1), in the exponent where e^a or e^b could overflow.
ATTEST_HOST_DEVICE inline double weight_change(double log_p, double a, double b) {
  if (b < short_series) return std::exp(log_p + a) * small_growth(b);
  if (b < 1) return std::exp(log_p + a) * std::expm1(b);
  return std::exp(log_p + a + b) - std::exp(log_p + a);
}

/// A share a such that H_j of the reference is at most a H_j of the kernel, for every key.
/// Then e^(a H) - 1 <= a (e^H - 1), as e^x - 1 is convex and 0 at 0.
ATTEST_HOST_DEVICE inline double share_of(const BoundConstants& own, const BoundConstants& kernel) {
  const double score = (own.score_relative + own.score_rounding) / kernel.score_relative;
  const double argument = own.argument / kernel.argument;
  const double exponent = own.exponent > 0 ? own.exponent / kernel.exponent : 0;
  const double absolute = own.score_absolute / kernel.score_absolute;
  const double added = own.added > 0 ? own.added / kernel.added : 0;
  return std::max(std::max(std::max(score, absolute), added), std::max(argument, exponent));
}

/// Bound and own error of one element of O. `sum` is sum_j phi_j |v_j - O|, not yet divided by the
/// row's denominator; `hull` is max_j |v_j - O|. terms.e1 is filled in here. The terms are those of
/// O before its epilogue.
struct ElementErrors {
  double bound;  ///< own included
  double own;
};
ATTEST_HOST_DEVICE inline ElementErrors element_errors(const BoundConstants& kernel,
                                                       const BoundConstants& own_constants,
                                                       const RowErrors& row, double sum,
                                                       double hull, ElementTerms<double> terms,
                                                       const Epilogue<double>& epilogue = {}) {
  const double e1 = sum / row.denominator;
  terms.e1 = row.own_share > 0 ? std::min(e1, hull) : hull;
  double core =
      row.is_vacuous ? static_cast<double>(HUGE_VAL) : core_error(kernel, row.kernel, terms);
  double value = terms.o;
  if (epilogue.is_given()) {
    core = epilogue_error(kernel, terms.o, core, epilogue);
    value = epilogue.of(terms.o);
  }
  const double bound = output_error(kernel, value, core);
  const double own_e1 = row.own_share > 0 ? row.own_share * e1 : e1;
  terms.e1 = row.own.growth <= largest_useful_growth ? std::min(own_e1, hull) : hull;
  double own = core_error(own_constants, row.own, terms);
  if (epilogue.is_given()) own = epilogue_error(own_constants, terms.o, own, epilogue);
  own += own_constants.output_absolute;
  return {bound + own, own};
}

}  // namespace attest
