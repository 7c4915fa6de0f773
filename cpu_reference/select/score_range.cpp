#include "cpu_reference/select/score_range.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/operations/select.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"
#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/relative_error.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Arithmetic arithmetic = fp32_arithmetic;

/// max(s, 0) that keeps NaN.
double above_zero(double s) {
  return s < 0 ? 0 : s;
}

/// q.k in double, in which products are exact.
struct DotProduct {
  double value = 0;
  double finite = 0;  ///< sum of |q k| of the finite products
  bool is_finite = true;
};

DotProduct dot_product(std::span<const float> q, std::span<const float> k) {
  DotProduct dot;
  for (std::size_t d = 0; d < q.size(); ++d) {
    const double product = double{q[d]} * double{k[d]};
    dot.value += product;
    if (std::isfinite(product)) {
      dot.finite += std::abs(product);
    } else {
      dot.is_finite = false;
    }
  }
  return dot;
}

/// The sum over heads, term by term.
class Score {
 public:
  Score(const Problem& problem, const SelectRoundings& how)
      : scale_(problem.scale),
        heads_(static_cast<double>(problem.query_heads)),
        dim_(static_cast<double>(problem.head_dim)),
        kappa_(accumulation_error(how.score, dim_, 1, arithmetic)) {}

  void add(const DotProduct& dot, double weight) {
    const double u = arithmetic.unit_roundoff, tiny = underflow.of_result;
    const double s = scale_ * dot.value;
    const double term = weight * above_zero(s);
    value_ += term;
    may_overflow_ |= !(dot.finite * (1 + kappa_) < arithmetic.max_finite);
    if (!dot.is_finite) {
      // Exactly 0, or as it is in whatever the sum is.
      has_special_ |= !std::isfinite(term);
      return;
    }
    const double of_dot = kappa_ * dot.finite + dim_ * underflow.results_per_term * tiny;
    const double before = std::abs(scale_) * of_dot;
    const double error = (before + u * (std::abs(s) + before) + tiny) * evaluation_slack;
    const double low = weight * above_zero(s - error), high = weight * above_zero(s + error);
    may_overflow_ |= !(std::abs(s) + error < arithmetic.max_finite) || !std::isfinite(weight);
    lowest_ += std::min(low, high);
    highest_ += std::max(low, high);
    largest_ += std::max(std::abs(low), std::abs(high));
    // In double: dim + 1 roundings of the dot product, one of each product, `heads` of the sum.
    own_error_ += 0x1p-52 * std::abs(weight * scale_) * dot.finite * (dim_ + heads_ + 4);
  }

  [[nodiscard]] ScoreRange range() const {
    const double of_sum =
        chain_error(heads_, arithmetic.unit_roundoff) * largest_ + 2 * heads_ * underflow.of_result;
    ScoreRange range{value_, own_error_, lowest_ - of_sum * evaluation_slack,
                     highest_ + of_sum * evaluation_slack};
    if (may_overflow_ || !(largest_ + of_sum < arithmetic.max_finite)) {
      range.lowest = -infinity;
      range.highest = infinity;
    } else if (has_special_) {
      range.lowest = range.highest = range.rank();
    }
    if (has_special_) range.own_error = 0;
    return range;
  }

 private:
  static constexpr Underflow underflow = underflow_of(arithmetic, false);

  double scale_, heads_, dim_, kappa_;
  double value_ = 0, lowest_ = 0, highest_ = 0, largest_ = 0, own_error_ = 0;
  bool may_overflow_ = false, has_special_ = false;
};

}  // namespace

std::vector<ScoreRange> score_ranges(const Problem& problem, const Inputs& inputs,
                                     const SelectRoundings& how, std::int64_t b, std::int64_t n,
                                     const std::vector<std::int64_t>& keys) {
  std::vector<ScoreRange> ranges;
  ranges.reserve(keys.size());
  for (const std::int64_t key : keys) {
    Score score(problem, how);
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      score.add(dot_product(inputs[selecting::q].row(b, h, n),
                            inputs[selecting::k].row(b, problem.kv_head_of(h), key)),
                inputs[selecting::weights].at(b, h, n, 0));
    }
    ranges.push_back(score.range());
  }
  return ranges;
}

}  // namespace attest
