#pragma once

#include <cstdint>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"

namespace attest {

/// Constants of a row's bound, without data: absolute or relative errors, none of them negative.
struct BoundConstants {
  double visible_keys;         ///< n; a sink is one of them
  double score_relative;       ///< delta_j per A_j
  double score_rounding;       ///< delta_j per |s_j|
  double score_absolute;       ///< delta_j from underflow and from the softcap
  double added;                ///< delta_j per sum of the magnitudes of what is added to a score
  double argument;             ///< H_j per D_j
  double exponent;             ///< constant part of H_j
  double largest_score;        ///< H_j per max|s|, for kernels that scale inside the exponent
  double largest_weight;       ///< |ln| of the largest weight beside that; 0: exp(0) is 1
  double numerator;            ///< Y
  double normaliser;           ///< Z
  double division;             ///< of the final normalisation
  double weight_absolute;      ///< lost per weight in the numerator, the largest weight being 1
  double normaliser_absolute;  ///< lost per weight in the normaliser
  double
      product_absolute;  ///< lost by all products of a column together, the largest weight being 1
  double logarithm;
  double rounding;  ///< u, of the final addition in LSE
  double lse_absolute;
  double lse_scaling;    ///< LSE's error per |m|
  double partial_score;  ///< H_j per max|s|, for splits that are merged by their LSE
  double partial_max;    ///< partial outputs must stay below
  double output_rounding;
  double output_absolute;
  double output_max;
  double max_finite;
  double epilogue_absolute;  ///< lost by a product or a sum of an epilogue
  double value_absolute;     ///< error of an element of O from the last bits of V's parts
  double lag;                ///< lambda
  double sum_scale;          ///< computed sums of P V over those of weights at most 1
  double weight_max;         ///< the largest weight over 1 that its format holds
  bool shifts_by_maximum;
  bool forms_weights_twice;     ///< normaliser and numerator use separately computed weights
  bool rounds_before_epilogue;  ///< O is stored before its gate and its residual are applied
  bool divides_early;  ///< weights, partial outputs or O itself are normalised before the last sum
};

/// Smallest and largest factor by which scales beside codes multiply numbers.
struct ScaleRange {
  double least = 1, most = 1;

  friend bool operator==(const ScaleRange&, const ScaleRange&) = default;
};

/// The largest finite |element| of each input, keys that no row sees included; scales of codes that
/// a kernel multiplies scores and elements of O by.
struct Magnitudes {
  double q = 0, k = 0, v = 0;
  ScaleRange scores = {}, values = {};

  friend bool operator==(const Magnitudes&, const Magnitudes&) = default;
};
[[nodiscard]] Magnitudes magnitudes_of(const Inputs& inputs);
[[nodiscard]] Magnitudes magnitudes_of(const RealInputs& inputs);

/// Relative error of the scale that a kernel multiplies by, beyond a rounding: where scale log2(e)
/// is subnormal it is rounded to a multiple of the smallest number, or flushed to 0. 0 for a normal
/// scale, and for kernels that multiply by the scale as it is.
[[nodiscard]] double subnormal_scale_error(const PrecisionPlan& precision, const Problem& problem,
                                           const Arithmetic& arithmetic = fp32_arithmetic);

/// Constants of a row that sees `visible_keys` keys: at least 1, or 0 and a sink.
[[nodiscard]] BoundConstants bound_constants(const PrecisionPlan& precision, const Problem& problem,
                                             std::int64_t visible_keys,
                                             const Magnitudes& magnitudes,
                                             const Arithmetic& arithmetic = fp32_arithmetic);

/// The plan of the double reference itself: the same formula with u = 2^-53 gives its own error.
[[nodiscard]] PrecisionPlan reference_plan(std::int64_t visible_keys);
/// The constants of the f64 reference's own error.
[[nodiscard]] BoundConstants reference_constants(const Problem& problem, std::int64_t visible_keys,
                                                 const Magnitudes& magnitudes);

}  // namespace attest
