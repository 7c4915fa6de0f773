#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/accumulation.hpp"
#include "core/attention/element_type.hpp"

namespace attest {

/// The right factor of a matrix product on tensor cores: [rows, lanes] in fp32, every value
/// representable in `type`.
class ProductOperand {
 public:
  /// values.size() == rows * lanes.
  ProductOperand(std::vector<float> values, std::int64_t lanes, ElementType type);

  [[nodiscard]] const float* row(std::int64_t t) const { return values_.data() + t * lanes_; }
  /// Exponents of the elements of a row, as a tensor core aligns by them.
  [[nodiscard]] const std::int32_t* exponents(std::int64_t t) const {
    return exponents_.data() + t * lanes_;
  }
  [[nodiscard]] std::int64_t lanes() const { return lanes_; }
  /// True if no value has more than 12 significant bits.
  [[nodiscard]] bool is_narrow() const { return is_narrow_; }

 private:
  std::vector<float> values_;
  std::vector<std::int32_t> exponents_;
  std::int64_t lanes_;
  bool is_narrow_;
};

/// sum[i] += sum_t left[t] * right[first + t][i], t ascending, as tensor cores do it, for i in [0,
/// sum.size()), sum.size() <= right.lanes(). Other rows of `right` are not read. Values of `left`
/// are representable in `left_type`.
///
/// Steps of b = fused_terms products (the last may be short). In a step the products are exact; the
/// products and the old sum are aligned to the largest exponent among them, each truncated toward
/// zero to F = fraction_bits below that exponent, added exactly, and the total truncated toward
/// zero to fp32, of whose fraction sum_bits stay. The exponent of a product is the sum of its
/// factors' exponents (not normalised: its significand lies in [1, 4)); subnormals have the
/// format's smallest exponent and are kept; a zero takes no part in the alignment, whose exponent
/// is never below -133. NaN and infinities follow IEEE rules, a NaN being 0x7fffffff; a total of
/// 2^128 or more becomes infinity; a zero is positive. Recorded on an H200 for F = 25 and b = 16,
/// TF32 8, fp8 too (gpu/arithmetic). [Fasi, Higham, Mikaitis, Pranesh 2021; MMA-Sim,
/// arXiv 2511.10909; Khattak and Mikaitis, arXiv 2512.07004]
///
/// Throws InvalidInput unless `accumulation` is one of a tensor core, with fused_terms in [1, 64],
/// fraction_bits in [1, 28] and sum_bits in [1, 23].
void accumulate_tensor_core(const Accumulation& accumulation, std::span<const float> left,
                            ElementType left_type, const ProductOperand& right, std::int64_t first,
                            std::span<float> sum);

}  // namespace attest
