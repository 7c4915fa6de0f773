#pragma once

#include <cstdint>
#include <functional>

#include "core/attention/codes.hpp"
#include "core/attention/tensor.hpp"

namespace attest {

/// Codes of a tensor [batch, heads, rows, columns], as the numbers that they stand for before they
/// are scaled, and its scales (scales_shape()).
struct QuantisedTensor {
  Tensor<float> codes, scales;
};

/// One number for each group of elements that shares a scale: [batch, heads, 1, 1] for
/// head, [batch, heads, ceil(rows / scale_block), 1] for block, [batch, heads, rows, 1] for row,
/// [batch, heads, 1, columns] for column; [batch, heads, 1, 0] for none.
[[nodiscard]] Shape scales_shape(const Shape& shape, Scales scales);

/// The scale of an element, or 1.
[[nodiscard]] float scale_of(const Tensor<float>& scales, Scales kind, std::int64_t b,
                             std::int64_t h, std::int64_t row, std::int64_t column);

/// The scale of elements whose largest finite magnitude is amax, of a code whose largest number is
/// M. In fp32 it is fl(amax / M); in ue8m0 the least power of two, not below 2^-127, of which M
/// times it is amax or more, so that nothing finite saturates. 1 where amax is 0, or fl(amax / M)
/// in fp32.
[[nodiscard]] float scale_for(float amax, ElementType code, ScaleFormat format);

/// The definition of quantise_operation (core/operations/quantise.hpp), which says it to the last
/// bit: a scale is scale_for() amax, the largest finite magnitude of its elements in the first
/// rows_of(entry) rows. A code is the number nearest to fl(value / scale), a quotient of fp32, ties
/// to even, saturating; NaN is 0 in formats without. Rows from rows_of(entry) on have codes of 0.
[[nodiscard]] QuantisedTensor quantise(const Tensor<float>& values, ElementType code, Scales kind,
                                       const std::function<std::int64_t(std::int64_t)>& rows_of,
                                       ScaleFormat format = ScaleFormat::fp32);

/// Mean of each column over the first rows_of(entry) rows of a head, [batch, heads, 1, columns]:
/// the sum in double, row after row, over their number, rounded to fp32; 0 where there is no row.
[[nodiscard]] Tensor<float> column_means(const Tensor<float>& values,
                                         const std::function<std::int64_t(std::int64_t)>& rows_of);

/// The first rows_of(entry) rows of `values` less the means of their columns, rounded to fp32;
/// other rows as they are. SageAttention quantises them in place of K: in exact arithmetic O stays,
/// and LSE loses Problem's scale times q.mean.
[[nodiscard]] Tensor<float> without_means(const Tensor<float>& values, const Tensor<float>& means,
                                          const std::function<std::int64_t(std::int64_t)>& rows_of);

/// Code times scale: exact in double, as their significands have 8 and 24 bits at most.
[[nodiscard]] Tensor<double> dequantise(const Tensor<float>& codes, const Tensor<float>& scales,
                                        Scales kind);

}  // namespace attest
