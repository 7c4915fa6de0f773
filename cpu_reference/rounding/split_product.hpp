#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/parts.hpp"
#include "core/attention/tensor_core_product.hpp"

namespace attest {
/// The power of two that brings the largest finite |value| times `factor` to at least
/// how.scaled_to, below twice that; 0, that is a factor of 1, where nothing is scaled.
[[nodiscard]] int scaling_exponent(const Parts& how, std::span<const float> values,
                                   double factor = 1);

/// The parts of values * 2^exponent, hi first: how.count vectors, or the values themselves where
/// nothing is split. Ties of TF32 are rounded away from zero, as cvt.rna does, others to even.
[[nodiscard]] std::vector<std::vector<float>> split(const Parts& how, std::span<const float> values,
                                                    int exponent);

/// The right factor of a product, split: [rows, lanes].
struct SplitOperand {
  Parts how;
  int exponent;                       ///< of its scaling
  std::vector<ProductOperand> parts;  ///< hi first

  /// `type`: of the values, where they are not split. They are scaled together.
  SplitOperand(const Parts& parts_, ElementType type, std::span<const float> values,
               std::int64_t lanes);
  [[nodiscard]] std::int64_t lanes() const { return parts.front().lanes(); }
};

/// accumulate_product() of a left factor, multiplied by 2^left_exponent and split, and rows
/// `first` on of `right`: the products of small parts first, each one chain over t that goes on
/// with the sum of the one before. `sum` is in units of the unscaled product.
void accumulate_split_product(const Accumulation& accumulation, std::span<const float> left,
                              ElementType left_type, int left_exponent, const SplitOperand& right,
                              std::int64_t first, std::span<float> sum);

/// sum[i] += sum_t left[t] * right[first + t][i], t ascending, for i in [0, sum.size()), sum.size()
/// <= right.lanes(), by the declared arithmetic: fp32_fma is one fused multiply-add a term, rounded
/// to nearest; tensor_core is accumulate_tensor_core(). Keys outside the range are not read. Values
/// of `left` are representable in `left_type`. Throws InvalidInput as accumulate_tensor_core()
/// does.
void accumulate_product(const Accumulation& accumulation, std::span<const float> left,
                        ElementType left_type, const ProductOperand& right, std::int64_t first,
                        std::span<float> sum);

}  // namespace attest
