#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/attention/tensor.hpp"
#include "core/base/error_ratio.hpp"

namespace attest {

/// True only if the error is proven to be at most the bound: NaN on either side is false.
[[nodiscard]] bool within(double bound, double error);

/// The worst element of a comparison.
struct WorstElement {
  Shape index{};
  double got = 0, want = 0, bound = 0;
  double ratio = 0;  ///< error over bound
};

struct Comparison {
  WorstElement worst;         ///< among the elements whose bound is finite
  std::int64_t elements = 0;  ///< compared
  std::int64_t vacuous = 0;   ///< elements without a finite bound: nothing was decided about them
  std::int64_t outside = 0;   ///< of the others, those whose error is not proven to be within it
  [[nodiscard]] bool is_within() const { return within(1.0, worst.ratio); }
  /// Counts an element whose ratio is set, and keeps the worst.
  void add(const WorstElement& element);
};

/// Element by element; the tensors have the same shape.
[[nodiscard]] Comparison compare(const Tensor<float>& got, const Tensor<double>& want,
                                 const Tensor<double>& bound);

/// Equality that the exact laws ask for: the same bits, or NaN both, as hardware does not promise
/// which NaN it gives. -0 differs from 0.
[[nodiscard]] bool same_bits_or_both_nan(float a, float b);

/// `[b, h, n, d]`
[[nodiscard]] std::string to_string(const Shape& index);

}  // namespace attest
