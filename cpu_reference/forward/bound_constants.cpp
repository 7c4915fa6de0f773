#include "cpu_reference/forward/bound_constants.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/operations/forward.hpp"
#include "cpu_reference/forward/added_to_score.hpp"
#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/exponential_error.hpp"
#include "cpu_reference/rounding/product_error.hpp"
#include "cpu_reference/rounding/relative_error.hpp"
#include "cpu_reference/rounding/stored_rounding.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool has_sinks(const Problem& problem) {
  return problem.sinks == Sinks::given;
}

bool are_split(const Parts& parts) {
  return parts.format != Parts::Format::whole;
}

/// The constants of one row, in the order of the derivation: what a step needs, earlier ones have
/// set.
class Composition {
 public:
  Composition(const PrecisionPlan& plan, const Problem& problem, std::int64_t visible_keys,
              const Magnitudes& magnitudes, const Arithmetic& arithmetic)
      : plan_(plan),
        problem_(problem),
        magnitudes_(magnitudes),
        arithmetic_(arithmetic),
        n_(static_cast<double>(visible_keys) + (has_sinks(problem) ? 1 : 0)),
        // Whoever knows the maximum beforehand knows the sink.
        blocks_(static_cast<double>(std::max<std::int64_t>(plan.blocks, 1)) +
                (has_sinks(problem) && !divides_weights() ? 1 : 0)),
        splits_(static_cast<double>(std::max<std::int64_t>(plan.splits, 1))),
        scale_error_(subnormal_scale_error(plan, problem, arithmetic)),
        underflow_(underflow_of(arithmetic, plan.flushes_subnormals)),
        weights_(stored_rounding(format_of(plan.weight_format))) {
    c_.visible_keys = n_;
    c_.shifts_by_maximum = plan.shifts_by_maximum;
    c_.divides_early = divides_weights() || is_normalised() || finishes_parts();
    c_.forms_weights_twice = divides_weights() && blocks_ > 1;
    // Products of codes are larger than those of the numbers where a scale is below 1.
    c_.max_finite =
        arithmetic.max_finite * std::min({1.0, magnitudes.scores.least, magnitudes.values.least});
  }

  BoundConstants composed() {
    add_scores();
    add_weights();
    add_sums();
    add_underflow();
    add_overflow();
    add_lse();
    add_parts();
    add_output();
    return c_;
  }

 private:
  [[nodiscard]] bool divides_weights() const { return plan_.rescale == Rescale::none; }
  [[nodiscard]] bool is_normalised() const { return plan_.rescale == Rescale::normalised_steps; }
  [[nodiscard]] bool is_split() const { return splits_ > 1; }
  [[nodiscard]] bool finishes_parts() const {
    return is_split() && (plan_.merge != Merge::sums || is_normalised());
  }
  [[nodiscard]] bool is_promoted() const { return plan_.promoted_keys > 0; }
  [[nodiscard]] bool merges_lse() const { return is_split() && plan_.merge == Merge::lse_pairs; }
  /// A row's only weight is 1, which every format holds.
  [[nodiscard]] bool rounds_weights() const {
    return plan_.weight_format != ElementType::fp32 && exps_ > 0;
  }
  /// Logarithm of the rounding of P.
  [[nodiscard]] double weight_rounding() const {
    return rounds_weights() ? log_of(weights_.relative) : 0;
  }
  [[nodiscard]] double division() const {
    return declared_error(plan_.division_error, arithmetic_);
  }
  /// True if O_p is rounded between split and merge.
  [[nodiscard]] bool rounds_parts() const {
    return finishes_parts() &&
           format_of(plan_.partial_format).unit_roundoff > arithmetic_.unit_roundoff;
  }

  /// Step 1: delta_j.
  void add_scores() {
    const double u = arithmetic_.unit_roundoff;
    const double d = static_cast<double>(problem_.head_dim);
    const double scale = std::abs(static_cast<double>(problem_.scale));
    const double dot = product_error(plan_.score, plan_.score_parts, d, 1, true, arithmetic_);
    c_.score_relative = plan_.scale_folded_into_q ? dot + u * (1 + dot) : dot;
    for (int i = 0; i < plan_.score_scalings + (plan_.scale_after_dot ? 1 : 0); ++i) {
      c_.score_rounding += u * (1 + c_.score_rounding);
    }
    c_.score_relative += c_.score_rounding * c_.score_relative;  // the rounding of s_hat, not of s
    // A scale that is flushed makes every score 0, in the LSE too.
    if (plan_.flushes_subnormals) c_.score_relative += scale_error_;
    const auto [tiny, losses] = underflow_;
    c_.score_absolute = losses * d * tiny * scale + tiny;
    if (plan_.score_scalings > 0) {
      // What is lost before a scale grows with it, and each product loses its own.
      const double most = std::max(1.0, magnitudes_.scores.most);
      c_.score_absolute *= most * (1 + plan_.score_scalings) * std::max(1.0, scale);
    }
    if (plan_.scale_folded_into_q) c_.score_absolute = d * tiny * (losses + magnitudes_.k);
    if (are_split(plan_.score_parts)) {
      const double folded = plan_.scale_folded_into_q ? scale : 1;
      const double floor = product_floor(plan_.score_parts, magnitudes_.q * folded, magnitudes_.k);
      if (floor < infinity) {
        c_.score_absolute += floor_share(plan_.score_parts, dot) * d * floor * scale / folded;
      } else {
        c_.max_finite = 0;
      }
    }
    if (problem_.softcap > 0) {
      c_.score_relative += c_.score_rounding;
      c_.score_rounding = 0;
      c_.score_absolute +=
          declared_error(plan_.softcap_error, arithmetic_) * static_cast<double>(problem_.softcap);
    }
    if (!plan_.scale_after_dot && !plan_.scale_folded_into_q) c_.largest_score = u;
    add_modifications();
  }

  /// Step 14, in delta_j.
  void add_modifications() {
    const double u = arithmetic_.unit_roundoff;
    const bool is_base_2 = plan_.exp.argument_error > 0 || plan_.lse == LseForm::log2;
    const bool is_scaled = plan_.scale_after_dot || plan_.scale_folded_into_q;
    double roundings = roundings_of_terms(problem_, is_scaled, is_base_2);
    if (roundings == 0 && has_sinks(problem_) && is_base_2) roundings = 2;
    if (roundings == 0) return;
    c_.added = chain_error(roundings, u);
    c_.score_relative *= 1 + c_.added;
    c_.score_rounding *= 1 + c_.added;
    c_.score_absolute = c_.score_absolute * (1 + c_.added) + roundings * underflow_.of_result;
  }

  /// E of step 2: strict moves of the maximum after a key's own exp: at later blocks, at the merge
  /// of splits, and, for steps that normalise within a tile first, from the tile's maximum to the
  /// running one. A rescale by a maximum that stayed counts as well where exp(0) is not 1.
  [[nodiscard]] double exponentials() const {
    if (!plan_.shifts_by_maximum) return 1;
    const bool is_inexact_at_zero = !plan_.exp.is_one_at_zero;
    const double moves =
        blocks_ - 1 + (is_split() && !merges_lse() ? 1 : 0) + (is_normalised() ? 1 : 0);
    double exps = c_.largest_score > 0 ? 1 + std::min(moves, n_ - 1) : std::min(1 + moves, n_ - 1);
    if (is_inexact_at_zero) exps = 1 + moves;
    if (merges_lse() && (n_ > 1 || is_inexact_at_zero)) exps += 1;
    return exps;
  }

  /// Steps 2, 11 and 12: H_j.
  void add_weights() {
    exps_ = exponentials();
    const ExponentialError exp = exponential_error(plan_.exp, arithmetic_);
    c_.exponent = exps_ * exp.constant;
    if (!plan_.exp.is_one_at_zero) c_.largest_weight = c_.exponent;
    c_.argument = exp.per_difference + scale_error_;
    if (plan_.sums_rounded_weights) c_.exponent += weight_rounding();
    c_.lag = plan_.reference_lag * std::numbers::ln2;
    c_.exponent += c_.argument * 2 * c_.lag;
  }

  /// kappa of P V, but for the additions of promoted blocks.
  [[nodiscard]] double value_error() const {
    // Visible keys need not begin with a step of a tensor core, nor lie beside each other.
    const bool begins_anywhere = is_window(problem_.mask) || problem_.document_seed != 0;
    const double sums = std::min(blocks_, n_) + (begins_anywhere ? 1 : 0);
    const bool hides_single_keys =
        problem_.padding_seed != 0 || problem_.list_seed != 0 || problem_.bias != Bias::none;
    const bool has_gaps = hides_single_keys && plan_.value.kind == Accumulation::Kind::tensor_core;
    const double terms = has_gaps ? static_cast<double>(problem_.key_len) : n_;
    if (!is_promoted()) {
      return product_error(plan_.value, plan_.value_parts, terms, sums, false, arithmetic_);
    }
    const double of_block = std::min(terms, static_cast<double>(plan_.promoted_keys));
    return product_error(plan_.value, plan_.value_parts, of_block, 1, true, arithmetic_);
  }

  /// Steps 4, 8 and 10: Y and Z.
  void add_sums() {
    const double u = arithmetic_.unit_roundoff;
    const double rounding = log_of(u);
    const double of_quotient = log_of(division());
    // Multiplications by the rescaling factors, then what each sum has for itself.
    const double rescaling = exps_ * rounding;
    value_ = value_error();
    double numerator = rescaling + std::log1p(value_);
    if (is_promoted()) {
      numerator += std::log1p(chain_error(std::min(blocks_, n_), u));
    }
    const double most = static_cast<double>(plan_.normaliser_chain) + (has_sinks(problem_) ? 1 : 0);
    const double chain = std::min(most, n_ - 1);
    double normaliser = rescaling + std::log1p(chain_error(chain, u));
    if (!plan_.sums_rounded_weights) numerator += weight_rounding();
    if (is_normalised()) numerator += blocks_ * (3 * rounding + of_quotient);
    if (is_split()) {
      numerator += (splits_ + 2) * rounding;
      normaliser += (splits_ + 1) * rounding;
    }
    if (finishes_parts()) numerator += of_quotient;
    numerator += plan_.value_scalings * rounding;
    if (problem_.dropout > 0) numerator += 3 * rounding;
    if (rounds_parts()) {
      numerator += log_of(stored_rounding(format_of(plan_.partial_format)).relative);
    }
    if (divides_weights()) {
      numerator += of_quotient;
    } else {
      c_.division = division();
    }
    c_.numerator = std::expm1(numerator);
    c_.normaliser = std::expm1(normaliser);
  }

  /// Steps 5 and 9.
  void add_underflow() {
    if (!c_.shifts_by_maximum) return;
    const auto [tiny, losses] = underflow_;
    const double flushed = (losses * exps_ + 1) * arithmetic_.min_normal;
    const double rounded = rounds_weights() ? weights_.absolute / plan_.weight_scale : 0;
    c_.weight_absolute =
        flushed + rounded +
        part_floor(plan_.value_parts) / plan_.weight_scale * floor_share(plan_.value_parts, value_);
    c_.normaliser_absolute = flushed + (plan_.sums_rounded_weights ? rounded : 0);
    const double steps = is_normalised() ? 2 * blocks_ : 0;
    // Flushed: the value, the product and the sum of every key, and both at every later step.
    c_.product_absolute = plan_.flushes_subnormals
                              ? (3 * n_ + 2 * (exps_ + splits_ + steps) + 2) * tiny
                              : (n_ + exps_ + splits_ + steps + 1) * tiny;
    if (plan_.value_scalings > 0) {
      c_.product_absolute *= (1 + plan_.value_scalings) * std::max(1.0, magnitudes_.values.most);
    }
  }

  /// The largest weight and the largest sum of P V, and the floor of V's parts.
  void add_overflow() {
    const double largest_weight = std::exp2(plan_.reference_lag) * plan_.weight_scale;
    const ElementFormat& of_weights = are_split(plan_.value_parts)
                                          ? part_format(plan_.value_parts.format)
                                          : format_of(plan_.weight_format);
    c_.weight_max = of_weights.max_finite / largest_weight;
    c_.sum_scale = largest_weight;
    if (problem_.dropout > 0 && problem_.dropout < 1) {
      c_.weight_max *= 1 - static_cast<double>(problem_.dropout);
    }
    if (!are_split(plan_.value_parts)) return;
    const double floor = tensor_floor(plan_.value_parts, magnitudes_.v);
    if (floor < infinity) {
      c_.value_absolute = floor * floor_share(plan_.value_parts, value_);
    } else {
      c_.sum_scale = infinity;
    }
  }

  /// Step 7.
  void add_lse() {
    const LogSumError error = log_sum_error(plan_.log_error, plan_.lse, arithmetic_);
    c_.logarithm = error.logarithm;
    c_.rounding = arithmetic_.unit_roundoff;
    c_.lse_absolute = underflow_.results_per_term * underflow_.of_result;
    if (plan_.lse == LseForm::log2) c_.lse_scaling = error.per_maximum + scale_error_;
  }

  /// Step 8: parts that are finished, and merged by their LSE.
  void add_parts() {
    const double u = arithmetic_.unit_roundoff;
    if (merges_lse() && n_ > 1) {
      // ln l_p is at most this, and so is -ln l_p where the largest weight is not 1 (g apart).
      const double log_sum = std::log(n_) + c_.lag + std::log1p(c_.normaliser) + c_.exponent;
      c_.partial_score =
          (u + c_.lse_scaling) * (1 + c_.largest_score) + c_.largest_score * (1 + c_.logarithm);
      c_.exponent += c_.argument * log_sum + (u + c_.logarithm) * log_sum + c_.lse_absolute;
    }
    const StoredRounding partial = stored_rounding(format_of(plan_.partial_format));
    c_.partial_max = finishes_parts() ? partial.overflow : infinity;
    if (rounds_parts()) c_.product_absolute += partial.absolute;
  }

  /// Step 6.
  void add_output() {
    const ElementFormat& format = format_of(problem_.element_type);
    const double u = arithmetic_.unit_roundoff;
    // fp32 output: the division already rounded to it.
    StoredRounding output{0, underflow_.of_result / 2, arithmetic_.max_finite};
    if (format.unit_roundoff > fp32_arithmetic.unit_roundoff &&
        u == fp32_arithmetic.unit_roundoff) {
      output = stored_rounding(format);
    }
    c_.output_rounding = output.relative;
    c_.output_absolute = output.absolute + underflow_.results_per_term * underflow_.of_result;
    c_.output_max = output.overflow;
    c_.epilogue_absolute = underflow_.of_result;
    c_.rounds_before_epilogue = plan_.rounds_before_epilogue;
  }

  const PrecisionPlan& plan_;
  const Problem& problem_;
  const Magnitudes& magnitudes_;
  const Arithmetic& arithmetic_;
  double n_, blocks_, splits_;
  double scale_error_;  ///< e_s of step 12
  Underflow underflow_;
  StoredRounding weights_;  ///< of P
  double exps_ = 0;         ///< E of step 2
  double value_ = 0;        ///< kappa of P V
  BoundConstants c_{};
};

/// Inputs or RealInputs.
template <class Tensors>
Magnitudes largest_of(const Tensors& inputs) {
  const auto largest = [&](InputIndex index) {
    double result = 0;
    for (const auto x : inputs[index].values()) {
      if (std::isfinite(x)) result = std::max<double>(result, std::abs(x));
    }
    return result;
  };
  return {.q = largest(forward::q), .k = largest(forward::k), .v = largest(forward::v)};
}

}  // namespace

double subnormal_scale_error(const PrecisionPlan& precision, const Problem& problem,
                             const Arithmetic& arithmetic) {
  const double scale = std::abs(static_cast<double>(problem.scale));
  if (scale == 0 || scale >= arithmetic.min_normal) return 0;
  if (precision.flushes_subnormals) return 1;
  const bool is_multiplied = precision.exp.argument_error > 0 || precision.lse == LseForm::log2;
  // Relative to scale log2(e), which is larger than the scale.
  return is_multiplied ? arithmetic.min_subnormal / 2 / scale : 0;
}

BoundConstants bound_constants(const PrecisionPlan& precision, const Problem& problem,
                               std::int64_t visible_keys, const Magnitudes& magnitudes,
                               const Arithmetic& arithmetic) {
  return Composition(precision, problem, visible_keys, magnitudes, arithmetic).composed();
}

Magnitudes magnitudes_of(const Inputs& inputs) {
  return largest_of(inputs);
}
Magnitudes magnitudes_of(const RealInputs& inputs) {
  return largest_of(inputs);
}

PrecisionPlan reference_plan(std::int64_t visible_keys) {
  // Three passes over the scores, weights divided by the normaliser, then P V. The C library's exp
  // and log are within one ulp, 2^-52, its tanh within two. The score's roundings are one more than
  // the plan's d: products are exact, and the scale is applied after the sum.
  PrecisionPlan plan;
  plan.exp = {"exp", 0x1p-52, 0};
  plan.softcap_error = 0x1p-50;  // tanh, the quotient before it and the product after it
  plan.rescale = Rescale::none;
  plan.normaliser_chain = visible_keys;
  plan.division_error = 0x1p-52;
  plan.log_error = 0x1p-52;
  return plan;
}

BoundConstants reference_constants(const Problem& problem, std::int64_t visible_keys,
                                   const Magnitudes& magnitudes) {
  return bound_constants(reference_plan(visible_keys), problem, visible_keys, magnitudes,
                         fp64_arithmetic);
}

}  // namespace attest
