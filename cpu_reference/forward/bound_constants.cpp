#include "cpu_reference/forward/bound_constants.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Accumulated error of `steps` steps that cost `step_error` each: k e / (1 - k e).
double chain_error(double steps, double step_error) {
  const double sum = steps * step_error;
  return sum < 1 ? sum / (1 - sum) : infinity;
}

/// kappa: error of a sum of `terms` products relative to its absolute sum. `parts` sums are formed
/// apart and added on.
double accumulation_error(const Accumulation& how, double terms, double parts, double u) {
  if (how.kind == Accumulation::Kind::fp32_fma) return chain_error(terms, u);
  const double steps = std::ceil(terms / how.fused_terms) + (parts - 1);
  return chain_error(steps, (how.fused_terms + 1) * std::exp2(-how.fraction_bits) + 2 * u);
}

/// Of factors in parts, relative to their own products.
struct PartsError {
  double relative;  ///< representation, and the pairs that are not multiplied
  double small;     ///< sigma
  double large;     ///< m_0^2
  double products;  ///< pairs that are multiplied
};

PartsError parts_error(const Parts& parts) {
  const auto size = [&](int i) {
    return i == 0 ? 1 + rest_of(parts, 1) : rest_of(parts, i) + rest_of(parts, i + 1);
  };
  const double rest = rest_of(parts, parts.count);
  PartsError error{rest * (2 + rest), 0, size(0) * size(0), 0};
  for (int i = 0; i < parts.count; ++i) {
    for (int j = 0; j < parts.count; ++j) {
      if (i + j >= parts.count) {
        error.relative += size(i) * size(j);
      } else {
        error.small += i + j > 0 ? size(i) * size(j) : 0;
        error.products += 1;
      }
    }
  }
  return error;
}

/// kappa of products of factors in parts. `is_one_sum`: the small products of all terms are summed
/// before the large ones.
double product_error(const Accumulation& how, const Parts& parts, double terms, double sums,
                     bool is_one_sum, double u) {
  if (parts.format == Parts::Format::whole) return accumulation_error(how, terms, sums, u);
  const PartsError error = parts_error(parts);
  const double chain = accumulation_error(how, terms, sums, u);
  if (error.products == 1) return error.relative + error.large * chain;
  const double all = error.large + error.small;
  if (!is_one_sum) {
    return error.relative +
           all * accumulation_error(how, error.products * terms, error.products * sums, u);
  }
  const double of_small = accumulation_error(how, (error.products - 1) * terms, sums, u);
  return error.relative + error.small * of_small + all * (chain + u * (1 + chain));
}

/// phi of a tensor whose largest element is `largest`; infinite where one has no hi.
double tensor_floor(const Parts& parts, double largest) {
  const ElementFormat& format = part_format(parts.format);
  if (parts.scaled_to > 0) return part_floor(parts) * largest / parts.scaled_to;
  return largest < format.max_finite * (1 + format.unit_roundoff / 2) ? part_floor(parts)
                                                                      : infinity;
}

/// -ln(1 - e): a factor within 1 +- e has a logarithm within this.
double log_of(double relative_error) {
  return relative_error < 1 ? -std::log1p(-relative_error) : infinity;
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
  const double u = arithmetic.unit_roundoff;
  const double n = static_cast<double>(visible_keys);
  const double d = static_cast<double>(problem.head_dim);
  const double scale = std::abs(static_cast<double>(problem.scale));
  const double blocks = static_cast<double>(std::max<std::int64_t>(precision.blocks, 1));
  const double splits = static_cast<double>(std::max<std::int64_t>(precision.splits, 1));
  const double rounding = log_of(u);
  const double scale_error = subnormal_scale_error(precision, problem, arithmetic);
  // A quotient or a logarithm is rounded to fp32, so no declared error is below u.
  const double division = std::max(precision.division_error, u);
  const bool is_normalised = precision.rescale == Rescale::normalised_steps;
  const bool is_split = splits > 1;

  BoundConstants c{};
  c.visible_keys = n;
  c.shifts_by_maximum = precision.shifts_by_maximum;
  const bool divides_weights = precision.rescale == Rescale::none;
  const bool finishes_parts = is_split && (precision.merge != Merge::sums || is_normalised);
  const bool merges_lse = is_split && precision.merge == Merge::lse_pairs;
  c.divides_early = divides_weights || is_normalised || finishes_parts;
  c.forms_weights_twice = precision.rescale == Rescale::none && blocks > 1;
  c.max_finite = arithmetic.max_finite;

  const double dot = product_error(precision.score, precision.score_parts, d, 1, true, u);
  c.score_relative = precision.scale_folded_into_q ? dot + u * (1 + dot) : dot;
  if (precision.scale_after_dot) {
    c.score_rounding = u;
    c.score_relative += u * c.score_relative;  // the rounding of s_hat, not of s
  }
  // A scale that is flushed makes every score 0, in the LSE too.
  if (precision.flushes_subnormals) c.score_relative += scale_error;
  const double tiny =
      precision.flushes_subnormals ? arithmetic.min_normal : arithmetic.min_subnormal;
  // What a term loses: one product or, flushed, a product and a sum.
  const double losses = precision.flushes_subnormals ? 2 : 1;
  c.score_absolute = losses * d * tiny * scale + tiny;
  if (precision.scale_folded_into_q) c.score_absolute = d * tiny * (losses + magnitudes.k);
  if (precision.score_parts.format != Parts::Format::whole) {
    const double folded = precision.scale_folded_into_q ? scale : 1;
    const double q = magnitudes.q * folded;
    const double of_q = tensor_floor(precision.score_parts, q);
    const double of_k = tensor_floor(precision.score_parts, magnitudes.k);
    const double share = (1 + 4 * rest_of(precision.score_parts, 1)) * (1 + dot);
    if (!(of_q + of_k < infinity))
      c.max_finite = 0;
    else
      c.score_absolute +=
          share * d * (q * of_k + magnitudes.k * of_q + of_q * of_k) * scale / folded;
  }
  if (problem.softcap > 0) {
    c.score_relative += c.score_rounding;
    c.score_rounding = 0;
    c.score_absolute += std::max(precision.softcap_error, u) * static_cast<double>(problem.softcap);
  }
  if (!precision.scale_after_dot && !precision.scale_folded_into_q) c.largest_score = u;

  // Strict moves of the maximum after a key's own exp: at later blocks, at the merge of splits,
  // and, for steps that normalise within a tile first, from the tile's maximum to the running one.
  // A rescale by a maximum that stayed counts as well where exp(0) is not 1.
  double exps = 1;
  const bool is_inexact_at_zero = !precision.exp.is_one_at_zero;
  if (precision.shifts_by_maximum) {
    const double moves = blocks - 1 + (is_split && !merges_lse ? 1 : 0) + (is_normalised ? 1 : 0);
    exps = c.largest_score > 0 ? 1 + std::min(moves, n - 1) : std::min(1 + moves, n - 1);
    if (is_inexact_at_zero) exps = 1 + moves;
    if (merges_lse && (n > 1 || is_inexact_at_zero)) exps += 1;
  }
  const ElementFormat& weights = format_of(precision.weight_format);
  // exps = 0: the row's only weight is 1, which every format holds.
  const bool rounds_weights = precision.weight_format != ElementType::fp32 && exps > 0;
  const double weight_rounding = rounds_weights ? log_of(weights.unit_roundoff) : 0;
  c.exponent = exps * log_of(std::max(precision.exp.relative_error, u));
  if (is_inexact_at_zero) c.largest_weight = c.exponent;
  // The logarithm of 1 + e, e = argument_error x: -ln(1 - e) < 1.01 e below e = 0.01; above it the
  // weight is lost.
  c.argument = u + 1.01 * precision.exp.argument_error + scale_error;
  if (precision.sums_rounded_weights) c.exponent += weight_rounding;
  c.lag = precision.reference_lag * std::numbers::ln2;
  c.exponent += c.argument * 2 * c.lag;

  // Numerator and normaliser: multiplications by the rescaling factors, then what each has for
  // itself.
  const double rescaling = exps * rounding;
  // Visible keys need not begin with a step of a tensor core, nor lie beside each other.
  const double sums = std::min(blocks, n) + (is_window(problem.mask) ? 1 : 0);
  const bool has_gaps =
      problem.padding_seed != 0 && precision.value.kind == Accumulation::Kind::tensor_core;
  const double terms = has_gaps ? static_cast<double>(problem.key_len) : n;
  const bool is_promoted = precision.promoted_keys > 0;
  const double value =
      is_promoted
          ? product_error(precision.value, precision.value_parts,
                          std::min(terms, static_cast<double>(precision.promoted_keys)), 1, true, u)
          : product_error(precision.value, precision.value_parts, terms, sums, false, u);
  double numerator = rescaling + std::log1p(value);
  if (is_promoted) numerator += std::log1p(chain_error(std::min(blocks, n), u));
  double normaliser =
      rescaling +
      std::log1p(chain_error(std::min(static_cast<double>(precision.normaliser_chain), n - 1), u));
  if (!precision.sums_rounded_weights) numerator += weight_rounding;
  if (is_normalised) numerator += blocks * (3 * rounding + log_of(division));
  if (is_split) {
    numerator += (splits + 2) * rounding;
    normaliser += (splits + 1) * rounding;
    if (finishes_parts) {
      numerator += log_of(division);
      const ElementFormat& partial = format_of(precision.partial_format);
      if (partial.unit_roundoff > u) numerator += log_of(partial.unit_roundoff);
    }
  }
  if (divides_weights) {
    numerator += log_of(division);
  } else {
    c.division = division;
  }
  const double value_share = (1 + 4 * rest_of(precision.value_parts, 1)) * (1 + value);
  c.numerator = std::expm1(numerator);
  c.normaliser = std::expm1(normaliser);

  if (c.shifts_by_maximum) {
    const double flushed =
        ((precision.flushes_subnormals ? 2 : 1) * exps + 1) * arithmetic.min_normal;
    const double rounded = rounds_weights ? weights.min_subnormal / 2 : 0;
    c.weight_absolute = flushed + rounded +
                        part_floor(precision.value_parts) / precision.weight_scale * value_share;
    c.normaliser_absolute = flushed + (precision.sums_rounded_weights ? rounded : 0);
    const double steps = is_normalised ? 2 * blocks : 0;
    // Flushed: the value, the product and the sum of every key, and both at every later step.
    c.product_absolute = precision.flushes_subnormals
                             ? (3 * n + 2 * (exps + splits + steps) + 2) * tiny
                             : (n + exps + splits + steps + 1) * tiny;
  }

  const double largest_weight = std::exp2(precision.reference_lag) * precision.weight_scale;
  const bool has_parts = precision.value_parts.format != Parts::Format::whole;
  const ElementFormat& of_weights = has_parts ? part_format(precision.value_parts.format) : weights;
  c.weight_max = of_weights.max_finite / largest_weight;
  c.sum_scale = largest_weight;
  if (has_parts) {
    const double of_v = tensor_floor(precision.value_parts, magnitudes.v);
    if (of_v < infinity)
      c.value_absolute = of_v * value_share;
    else
      c.sum_scale = infinity;
  }

  c.logarithm = std::max(precision.log_error, u);
  c.rounding = u;
  c.lse_absolute = losses * tiny;
  if (precision.lse == LseForm::log2) {
    c.lse_scaling = chain_error(4, u) + scale_error;
    c.logarithm += 2 * u;
  }
  if (merges_lse && n > 1) {
    // ln l_p is at most this, and so is -ln l_p where the largest weight is not 1 (g apart).
    const double log_sum = std::log(n) + c.lag + std::log1p(c.normaliser) + c.exponent;
    c.partial_score =
        (u + c.lse_scaling) * (1 + c.largest_score) + c.largest_score * (1 + c.logarithm);
    c.exponent += c.argument * log_sum + (u + c.logarithm) * log_sum + c.lse_absolute;
  }
  c.partial_max = infinity;
  if (finishes_parts) {
    const ElementFormat& partial = format_of(precision.partial_format);
    c.partial_max = partial.max_finite * (1 + partial.unit_roundoff / 2);
    if (partial.unit_roundoff > u) c.product_absolute += partial.min_subnormal / 2;
  }
  const ElementFormat& output = format_of(problem.element_type);
  const bool rounds_output =
      output.unit_roundoff > fp32_arithmetic.unit_roundoff && u == fp32_arithmetic.unit_roundoff;
  // fp32 output: the division already rounded to it.
  c.output_rounding = rounds_output ? output.unit_roundoff : 0;
  c.output_absolute = (rounds_output ? output.min_subnormal : tiny) / 2 + losses * tiny;
  // From max + half an ulp on the result is infinity; half an ulp of the largest number is more
  // than u / 2 of it.
  c.output_max =
      rounds_output ? output.max_finite * (1 + output.unit_roundoff / 2) : arithmetic.max_finite;
  return c;
}

Magnitudes magnitudes_of(const Inputs& inputs) {
  const auto largest = [](const Tensor<float>& tensor) {
    float result = 0;
    for (const float x : tensor.values()) {
      if (std::isfinite(x)) result = std::max(result, std::abs(x));
    }
    return static_cast<double>(result);
  };
  return {largest(inputs[forward::q]), largest(inputs[forward::k]), largest(inputs[forward::v])};
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
