#pragma once

#include <array>
#include <cmath>

#include "core/attention/problem.hpp"
#include "core/base/host_device.hpp"
#include "cpu_reference/backward/gradient_bound.hpp"

namespace attest {

// What the double references on the CPU and on a device share besides gradient_bound.hpp: single
// pairs, what they add to the sums, and a single element once its sums are known.

/// The pair whose q.k, sum |q k|, dO.v, sum |dO v| and what is added to its score stand in x,
/// absolute_x, g, absolute_g, added and absolute_added, and what dropout makes of its weight in
/// kept, by the definition
/// (core/operations/backward.hpp).
template <class Number>
[[nodiscard]] ATTEST_HOST_DEVICE GradientPair<Number> pair_of_products(
    const Problem& problem, GradientPair<Number> pair, const SavedRow<Number>& row) {
  using std::exp;
  using std::tanh;
  pair.x *= problem.scale;
  pair.absolute_x *= std::abs(problem.scale);
  pair.s = pair.x;
  pair.chi = 1;
  if (problem.softcap > 0) {
    const Number t = tanh(Number(pair.x / problem.softcap));
    pair.s = problem.softcap * t;
    pair.chi = 1 - t * t;
  }
  pair.s += pair.added;
  pair.lse = row.lse;
  pair.delta = row.delta;
  pair.absolute_delta = row.absolute_delta;
  pair.of_kernel = row.of_kernel;
  pair.of_reference = row.of_reference;
  pair.p = exp(Number(pair.s - pair.lse));
  pair.r = pair.kept * pair.g - pair.delta;
  pair.tau = pair.p * pair.r * pair.chi;
  return pair;
}

/// Factor of a row of an input in a sum, with the absolute errors that a kernel's and the
/// reference's own factor may have.
struct PairTerm {
  double size, error, own_error;
};
struct PairTerms {
  PairTerm dscore;  ///< of dQ and dK
  PairTerm weight;  ///< of dV
  PairTerm bias;    ///< of dbias
};

/// The term; with an infinite error a size of 0, as nothing is said of the sum then and the size
/// may be beyond double, too.
[[nodiscard]] ATTEST_HOST_DEVICE inline PairTerm pair_term(double size, double error,
                                                           double own_error) {
  const auto infinity = static_cast<double>(HUGE_VAL);
  if (error == infinity) return {0, infinity, infinity};
  return {size, error, own_error};
}

/// True if all that P of a pair is formed of is finite, but for LSE, which may be infinite. False:
/// NaN is the answer.
[[nodiscard]] ATTEST_HOST_DEVICE inline bool has_weight(const GradientPair<double>& pair) {
  return std::isfinite(pair.x) && std::isfinite(pair.absolute_added) && !std::isnan(pair.lse);
}
/// True if all that dS of a pair is formed of is finite. False: NaN is the answer.
[[nodiscard]] ATTEST_HOST_DEVICE inline bool is_given(const GradientPair<double>& pair) {
  return has_weight(pair) && std::isfinite(pair.g) && std::isfinite(pair.delta);
}

[[nodiscard]] ATTEST_HOST_DEVICE inline PairTerms pair_terms(const GradientConstants& kernel,
                                                             const GradientConstants& own,
                                                             const GradientPair<double>& pair) {
  const double of_bias = pair.p * pair.r;
  PairTerms terms{{pair.tau, 0, 0}, {pair.p * pair.kept, 0, 0}, {of_bias, 0, 0}};
  if (!has_weight(pair)) return terms;
  const PairErrors<double> of_kernel = pair_errors(kernel, pair, pair.of_kernel);
  const PairErrors<double> mine = pair_errors(own, pair, pair.of_reference);
  terms.weight = pair_term(pair.p * pair.kept, of_kernel.weight, mine.weight);
  if (!is_given(pair)) return terms;
  terms.dscore = pair_term(pair.tau, of_kernel.dscore, mine.dscore);
  terms.bias = pair_term(of_bias, of_kernel.bias, mine.bias);
  return terms;
}

/// Constants by which the sums of one output become its value and its errors.
struct GradientSumBound {
  double factor;  ///< multiplies the sum
  SumBound of_kernel, of_reference;
};

/// Constants of the sums of dQ, dK and dV, in the order of the outputs.
[[nodiscard]] inline std::array<GradientSumBound, 3> gradient_sum_bounds(
    const Problem& problem, const GradientConstants& kernel, const GradientConstants& own) {
  const double scale = problem.scale;
  return {{{scale,
            {kernel.of_dq, kernel.dq_absolute, kernel.dq_sum_limit},
            {own.of_dq, own.dq_absolute, own.dq_sum_limit}},
           {scale,
            {kernel.of_dk, kernel.dk_absolute, kernel.kv_part_limit},
            {own.of_dk, own.dk_absolute, own.kv_part_limit}},
           {1,
            {kernel.of_dv, kernel.dv_absolute, kernel.kv_part_limit},
            {own.of_dv, own.dv_absolute, own.kv_part_limit}}}};
}

/// Sums of an element over its pairs: of the terms' sizes and errors times what they are multiplied
/// by; the absolute ones of both together.
struct GradientSum {
  double value, errors, absolute, own_errors, own_absolute;
};
struct GradientElement {
  double value;
  double bound;  ///< own_error included
  double own_error;
};
/// `lost`: what a kernel loses of the sum besides; infinite where nothing can be proven of it.
[[nodiscard]] ATTEST_HOST_DEVICE inline GradientElement gradient_element(
    const GradientConstants& kernel, const GradientConstants& own, const GradientSumBound& of,
    const GradientSum& sum, double lost = 0) {
  const double x = sum.value * of.factor, size = std::abs(of.factor);
  if (!std::isfinite(x)) {
    const auto nan = static_cast<double>(NAN);
    return {nan, nan, nan};
  }
  const auto infinity = static_cast<double>(HUGE_VAL);
  if (sum.absolute == 0 && x == 0) return {x, lost == infinity ? infinity : 0, 0};
  const double error = sum_error(own, of.of_reference, size, x, sum.own_errors, sum.own_absolute);
  if (lost == infinity) return {x, infinity, error};
  SumBound of_kernel = of.of_kernel;
  of_kernel.lost += lost;
  return {x, error + sum_error(kernel, of_kernel, size, x, sum.errors, sum.absolute), error};
}

}  // namespace attest
