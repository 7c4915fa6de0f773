#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/added_to_score.hpp"
#include "cpu_reference/forward/epilogue.hpp"
#include "cpu_reference/forward/error_bound.hpp"

namespace attest {

/// 113-bit significand, 15-bit exponent: IEEE binary128.
using Quad = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_quad::backend_type,
                                           boost::multiprecision::et_off>;
/// 256-bit significand (77 decimal digits), on the stack.
using Wide = boost::multiprecision::number<
    boost::multiprecision::mpfr_float_backend<77, boost::multiprecision::allocate_stack>,
    boost::multiprecision::et_off>;

/// One row of the answer by its definition. Vectors over keys have one element a visible key, over
/// columns output_dim().
template <class Number>
struct OracleRow {
  std::vector<std::int64_t> keys;  ///< that the row sees, ascending
  std::vector<Number> scores;      ///< s_j = scale * q.k_j, or c tanh(s_j / c) with a softcap c,
                                   ///< and what ALiBi and a bias add
  std::vector<Number> absolute_scores;      ///< A_j = |scale| * sum |q k_j|
  std::vector<Number> weights;              ///< p_j = exp(s_j - LSE)
  std::vector<Number> attended;             ///< A: sum d_j p_j v_j; 0 for an empty row
  std::vector<Epilogue<Number>> epilogues;  ///< of the columns
  std::vector<Number> o;                    ///< A, or G A + R with a gate and a residual
  std::vector<Number> absolute_o;           ///< W: sum d_j p_j |v_j|
  Number lse;                               ///< ln sum exp(s_j); -inf for an empty row
  std::vector<Number> added;                ///< what ALiBi and a bias add to a score
  std::vector<Number> added_magnitude;      ///< the sum of the magnitudes of both
  std::vector<Number> factors;              ///< d_j: 0 or 1 / (1 - p) with a dropout p, else 1
  Number sink;                              ///< in LSE as one more score; -inf: there is none
};

/// Terms summed by sign: their sum and their absolute sum for one addition a term.
template <class Number>
class SignedSums {
 public:
  template <class Term>
  void add(const Term& term) {
    (term < 0 ? negative_ : positive_) += term;
  }
  [[nodiscard]] Number total() const { return positive_ + negative_; }
  [[nodiscard]] Number absolute() const { return positive_ - negative_; }

 private:
  Number positive_ = 0, negative_ = 0;
};

/// Row (b, h, query), h a query head, of Inputs or RealInputs. No tiling, no tricks. A NaN or
/// infinity in q or in a visible k makes O and LSE NaN, and so does one in a sink, a slope or a
/// bias that is none of them by definition; one in a visible v, a gate or a residual makes its
/// column of O NaN. Relative error of sums of like signs: about (n + d) epsilon.
template <class Number, class Tensors>
[[nodiscard]] OracleRow<Number> oracle_row(const Problem& problem, const Tensors& inputs,
                                           std::int64_t b, std::int64_t h, std::int64_t query) {
  using std::abs;
  using std::exp;
  using std::log;
  using std::tanh;
  const Number nan = std::numeric_limits<Number>::quiet_NaN();
  const std::int64_t kv_head = problem.kv_head_of(h);
  const auto columns = static_cast<std::size_t>(problem.output_dim());
  const auto q = inputs[forward::q].row(b, h, query);

  OracleRow<Number> row;
  row.keys = visible_keys_of(problem, b, query);
  row.sink = -std::numeric_limits<Number>::infinity();
  bool is_finite = true;
  if constexpr (std::is_same_v<Tensors, Inputs>) {
    row.keys = forward::keys_of_row(problem, inputs, b, h, query);
    const float sink = forward::sink_of(problem, inputs, h);
    is_finite = std::isfinite(sink) || sink < 0 || query >= problem.query_len_of(b);
    const bool exists = query < problem.query_len_of(b);
    if (std::isfinite(sink) && exists) row.sink = sink;
  }
  const auto with_epilogue = [&](OracleRow<Number> finished) {
    for (std::size_t c = 0; c < columns; ++c) {
      const auto column = static_cast<std::int64_t>(c);
      finished.epilogues.push_back(epilogue_of<Number>(problem, inputs, b, h, query, column));
      finished.o.push_back(finished.epilogues[c].of(finished.attended[c]));
    }
    return finished;
  };
  row.attended.assign(columns, Number(0));
  row.absolute_o.assign(columns, Number(0));
  row.lse = row.sink;
  if (row.keys.empty() && is_finite) return with_epilogue(std::move(row));

  for (const std::int64_t key : row.keys) {
    const auto k = inputs[forward::k].row(b, kv_head, key);
    SignedSums<Number> sums;
    for (std::size_t c = 0; c < q.size(); ++c) {
      is_finite = is_finite && std::isfinite(q[c]) && std::isfinite(k[c]);
      if (!is_finite) continue;
      if constexpr (std::is_same_v<Tensors, Inputs>) {
        // 24 + 24 significant bits: the product is exact in double.
        sums.add(static_cast<double>(q[c]) * static_cast<double>(k[c]));
      } else {
        sums.add(Number(Number(q[c]) * k[c]));
      }
    }
    row.scores.push_back(problem.scale * sums.total());
    if (problem.softcap > 0) {
      row.scores.back() = problem.softcap * tanh(Number(row.scores.back() / problem.softcap));
    }
    row.absolute_scores.push_back(std::abs(problem.scale) * sums.absolute());
    const auto added = added_to_score<Number>(problem, inputs, b, h, query, key);
    is_finite = is_finite && added.is_finite;
    row.added.push_back(added.sum);
    row.added_magnitude.push_back(added.magnitude);
    row.scores.back() += added.sum;
    row.factors.push_back(kept_factor<Number>(problem, b, h, query, key));
  }
  if (!is_finite) {
    row.attended.assign(columns, nan);
    row.absolute_o.assign(columns, nan);
    row.lse = nan;
    return with_epilogue(std::move(row));
  }

  const bool has_sink = row.sink > -std::numeric_limits<Number>::infinity();
  Number maximum = *std::max_element(row.scores.begin(), row.scores.end());
  if (has_sink) maximum = std::max(maximum, row.sink);
  Number normaliser = has_sink ? Number(exp(Number(row.sink - maximum))) : Number(0);
  for (const Number& score : row.scores) {
    row.weights.push_back(exp(Number(score - maximum)));
    normaliser += row.weights.back();
  }
  row.lse = maximum + log(normaliser);
  std::vector<SignedSums<Number>> sums(columns);
  for (std::size_t j = 0; j < row.weights.size(); ++j) {
    row.weights[j] /= normaliser;
    const auto v = inputs[forward::v].row(b, kv_head, row.keys[j]);
    for (std::size_t c = 0; c < columns; ++c) {
      if (std::isfinite(v[c])) {
        sums[c].add(Number(row.factors[j] * row.weights[j]) * v[c]);
      } else {
        row.attended[c] = nan;
      }
    }
  }
  for (std::size_t c = 0; c < columns; ++c) {
    row.attended[c] += sums[c].total();  // stays NaN
    row.absolute_o[c] = sums[c].absolute();
  }
  return with_epilogue(std::move(row));
}

/// The bound of one row, straight from the derivation in error_bound.hpp.
template <class Number>
struct OracleBound {
  std::vector<Number> o;  ///< output_dim() elements
  Number lse;
};

namespace oracle_detail {

/// p e^a (e^b - 1) for p = e^log_p, formed in the exponent where e^a or e^b could overflow.
template <class Number>
Number weight_change(const Number& log_p, const Number& a, const Number& b) {
  using std::exp;
  if (b < 1) return exp(Number(log_p + a)) * (exp(b) - 1);
  return exp(Number(log_p + a + b)) - exp(Number(log_p + a));
}

/// Candidate (a) or (b) of step 3: phi_j = p_j (e^H_j - 1), and the denominator.
template <class Number>
struct WeightErrors {
  std::vector<Number> phi;
  Number sum, denominator;
};

/// `centre` is the key whose error is taken as common to the row, or -1.
template <class Number>
WeightErrors<Number> weight_errors(const std::vector<Number>& log_weights,
                                   const std::vector<Number>& h, std::int64_t centre) {
  using std::exp;
  WeightErrors<Number> errors{{}, 0, 0};
  for (std::size_t j = 0; j < h.size(); ++j) {
    Number total = h[j];
    if (centre >= 0) total += h[static_cast<std::size_t>(centre)];
    if (static_cast<std::int64_t>(j) == centre) total = 0;
    errors.phi.push_back(weight_change(log_weights[j], Number(0), total));
    errors.sum += errors.phi.back();
    errors.denominator += exp(Number(log_weights[j] - total));
  }
  return errors;
}

}  // namespace oracle_detail

/// Bound of a kernel with the constants `c`, for a row that oracle_row returned; infinite where
/// nothing can be proven, NaN where the answer is. Empty rows must be exact: 0, or the residual.
template <class Number, class Tensors>
[[nodiscard]] OracleBound<Number> oracle_bound(const Problem& problem, const Tensors& inputs,
                                               std::int64_t b, std::int64_t h,
                                               const OracleRow<Number>& row,
                                               const BoundConstants& c, bool scale_folded_into_q) {
  using std::abs;
  using std::exp;
  using std::log;
  const auto columns = static_cast<std::size_t>(problem.output_dim());
  const Number infinity = std::numeric_limits<Number>::infinity();
  OracleBound<Number> bound{std::vector<Number>(columns, Number(0)), Number(0)};
  if (row.keys.empty() && !(row.sink > -infinity)) return bound;
  const OracleBound<Number> vacuous{std::vector<Number>(columns, infinity), infinity};
  if (!(abs(row.lse) < infinity)) {
    const Number nan = std::numeric_limits<Number>::quiet_NaN();
    return {std::vector<Number>(columns, nan), nan};
  }

  // Steps 1 and 14.
  std::vector<Number> scores = row.scores, weights = row.weights, delta;
  for (std::size_t j = 0; j < row.keys.size(); ++j) {
    const Number before = row.scores[j] - row.added[j];
    const Number terms = abs(before) + row.added_magnitude[j];
    delta.push_back(score_error(c, before, row.absolute_scores[j]) + added_error(c, terms));
    if (!(terms < c.max_finite)) return vacuous;
    Number intermediate = row.absolute_scores[j];
    if (!scale_folded_into_q && problem.scale != 0) intermediate /= std::abs(problem.scale);
    intermediate = std::max(intermediate, row.absolute_scores[j]);
    if (!(intermediate * (1 + c.score_relative) < c.max_finite)) return vacuous;
  }
  // The sink is a key of value 0.
  if (row.sink > -infinity) {
    scores.push_back(row.sink);
    weights.push_back(exp(Number(row.sink - row.lse)));
    delta.push_back(score_error(c, Number(0), Number(0)) + added_error(c, Number(abs(row.sink))));
  }
  const std::size_t keys = scores.size();

  // Step 2.
  std::vector<Number> log_error, log_weights;
  Number largest = -infinity, magnitude = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    largest = std::max<Number>(largest, scores[j] + delta[j]);
    magnitude = std::max<Number>(magnitude, abs(scores[j]) + delta[j]);
  }
  Number top_exponent = -infinity;
  for (std::size_t j = 0; j < keys; ++j) {
    log_error.push_back(log_weight_error(c, scores[j], delta[j], largest, magnitude));
    log_weights.push_back(scores[j] - row.lse);
    top_exponent = std::max<Number>(top_exponent, log_weights[j] + log_error[j]);
  }

  // Step 3. The key of the largest weight is the only one that can hold more than half of it.
  const auto top = std::max_element(weights.begin(), weights.end()) - weights.begin();
  const auto plain = oracle_detail::weight_errors(log_weights, log_error, -1);
  const auto centred = oracle_detail::weight_errors(log_weights, log_error, top);
  const bool is_centred = 2 * weights[static_cast<std::size_t>(top)] > 1 &&
                          centred.sum * plain.denominator < plain.sum * centred.denominator;
  const auto& errors = is_centred ? centred : plain;

  RowSummary<Number> summary{};
  const bool can_sum = top_exponent <= largest_summed_exponent;
  summary.growth = can_sum ? Number(errors.sum / errors.denominator) : infinity;
  summary.log_growth =
      can_sum ? log(Number(1 + plain.sum)) : Number(top_exponent + log(Number(keys)));
  summary.largest_magnitude = magnitude;
  summary.normaliser_floor =
      normaliser_floor<Number>(c, magnitude, row.lse - largest, plain.denominator);
  if (c.forms_weights_twice) {
    for (std::size_t j = 0; j < keys; ++j) {
      const Number twice = 2 * (log_error[j] - delta[j]);
      summary.twice_formed +=
          oracle_detail::weight_change(log_weights[j], log_error[j], twice) / plain.denominator;
    }
  }

  for (std::size_t column = 0; column < columns; ++column) {
    if (row.keys.empty()) continue;   // nothing was added: 0, whatever the sink
    bound.o[column] = row.o[column];  // stays where it is NaN
    if (!(abs(row.o[column]) < infinity)) continue;
    const Number& attended = row.attended[column];
    Number sum = 0, hull = 0, v_abs_sum = 0, v_abs_max = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      const bool is_sink = j == row.keys.size();
      const Number v =
          is_sink
              ? Number(0)
              : row.factors[j] * Number(inputs[forward::v].at(b, problem.kv_head_of(h), row.keys[j],
                                                              static_cast<std::int64_t>(column)));
      sum += errors.phi[j] * abs(Number(v - attended));
      hull = std::max<Number>(hull, abs(Number(v - attended)));
      v_abs_sum += abs(v);
      v_abs_max = std::max<Number>(v_abs_max, abs(v));
    }
    const bool is_useful = summary.growth <= largest_useful_growth;
    const Number e1 = is_useful ? std::min<Number>(sum / errors.denominator, hull) : hull;
    Number core =
        core_error(c, summary, {attended, row.absolute_o[column], e1, v_abs_sum, v_abs_max});
    const Epilogue<Number>& epilogue = row.epilogues[column];
    if (epilogue.is_given()) core = epilogue_error(c, attended, core, epilogue);
    bound.o[column] = output_error(c, row.o[column], core);
  }
  bound.lse = lse_error(c, summary, row.lse);
  return bound;
}

/// The oracle's answer for a kernel that performs `precision`.
template <class Number>
[[nodiscard]] OracleBound<Number> oracle_bound(const Problem& problem, const Inputs& inputs,
                                               std::int64_t b, std::int64_t h,
                                               const OracleRow<Number>& row,
                                               const PrecisionPlan& precision) {
  const auto keys = static_cast<std::int64_t>(row.keys.size());
  const bool has_terms = keys > 0 || row.lse > -std::numeric_limits<Number>::infinity();
  const BoundConstants c = has_terms
                               ? bound_constants(precision, problem, keys, magnitudes_of(inputs))
                               : BoundConstants{};
  return oracle_bound(problem, inputs, b, h, row, c, precision.scale_folded_into_q);
}

}  // namespace attest
