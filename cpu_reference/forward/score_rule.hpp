#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "core/attention/precision_plan.hpp"
#include "core/base/error.hpp"

namespace attest {

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// Map from a dot product to a weight: where the scale enters, which exponential, and in which unit
/// the maximum is kept.
class ScoreRule {
 public:
  ScoreRule(const PrecisionPlan& precision, float scale)
      : exp_(exponential_named(precision.exp.name)),
        keeps_log2_(precision.lse == LseForm::log2),
        scale_(std::abs(scale)),
        folds_(precision.scale_folded_into_q),
        fuses_(!precision.scale_after_dot && !precision.scale_folded_into_q) {
    const bool has_log2 = keeps_log2_ || (fuses_ && exp_ == Exponential::exp2);
    factor_ = has_log2 ? scale * std::numbers::log2e_v<float> : scale;
    if (keeps_log2_ && exp_ != Exponential::exp2) {
      throw InvalidInput(fmt::format("lse is log2 but the exponential is '{}'; allowed: '{}'",
                                     precision.exp.name, exp2_folded().name));
    }
    if (precision.scale_after_dot && precision.scale_folded_into_q) {
      throw InvalidInput(
          "scale_after_dot and scale_folded_into_q are both set; allowed: at most one");
    }
  }

  /// The query that enters the dot product. With a negative scale the fused form turns the query's
  /// sign (exact), so that the largest dot product is the largest score.
  [[nodiscard]] std::vector<float> query(std::span<const float> q) const {
    std::vector<float> result(q.begin(), q.end());
    if (folds_) {
      for (float& element : result) element *= factor_;
    } else if (fuses_ && factor_ < 0) {
      for (float& element : result) element = -element;
    }
    return result;
  }

  /// Magnitude of the factor by which a query is multiplied.
  [[nodiscard]] double query_factor() const { return folds_ ? std::abs(factor_) : 1; }

  /// Turns dot products into the numbers whose maximum is tracked.
  void finish_scores(std::span<float> x) const {
    if (folds_ || fuses_) return;
    for (float& element : x) element *= factor_;
  }

  [[nodiscard]] float weight(float score, float m) const {
    if (!fuses_) return keeps_log2_ ? exponential(score - m) : natural_exponential(score - m);
    const float factor = std::abs(factor_);
    return exponential(std::fma(score, factor, -(m * factor)));
  }

  /// e^x for a difference of natural logarithms.
  [[nodiscard]] float natural_exponential(float x) const {
    return exponential(exp_ == Exponential::exp2 ? x * std::numbers::log2e_v<float> : x);
  }

  /// Factor for what was summed at maximum `from` when the maximum becomes `to`; 0 when nothing
  /// was.
  [[nodiscard]] float rescale(float from, float to) const {
    if (from == minus_infinity) return 0;
    return fuses_ ? exponential((from - to) * std::abs(factor_)) : weight(from, to);
  }

  /// The maximum as a natural logarithm.
  [[nodiscard]] float natural(float m) const {
    if (keeps_log2_) {
      return (fuses_ ? m * std::abs(factor_) : m) * std::numbers::ln2_v<float>;
    }
    return fuses_ ? m * scale_ : m;
  }

 private:
  enum class Exponential { expf, fast_expf, exp2 };

  static Exponential exponential_named(const std::string& name) {
    if (name == library_expf().name) return Exponential::expf;
    if (name == fast_expf().name) return Exponential::fast_expf;
    if (name == exp2_folded().name) return Exponential::exp2;
    throw InvalidInput(fmt::format("exponential '{}' cannot be emulated; allowed: '{}', '{}', '{}'",
                                   name, library_expf().name, fast_expf().name,
                                   exp2_folded().name));
  }

  [[nodiscard]] float exponential(float x) const {
    switch (exp_) {
      case Exponential::expf:
        return std::exp(x);
      case Exponential::fast_expf:
        return std::exp2(x * std::numbers::log2e_v<float>);
      case Exponential::exp2:
        return std::exp2(x);
    }
    return std::numeric_limits<float>::quiet_NaN();
  }

  Exponential exp_;
  bool keeps_log2_;
  float factor_ = 1;
  float scale_;  ///< |scale|
  bool folds_, fuses_;
};

}  // namespace attest
