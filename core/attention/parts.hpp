#pragma once

#include "core/attention/element_type.hpp"

namespace attest {

/// Narrow parts of factors that a kernel holds in fp32, as tensor cores read them. A factor becomes
/// the sum of `count` numbers of a narrower format: hi is the factor in that format, lo what hi
/// leaves of it, and so on. Of two factors the parts i and j are multiplied where i + j < count (1,
/// 3 or 6 products), and what a chain sums of the small products is summed before, or apart from,
/// the products of hi and hi. [Ootomo and Yokota, IJHPCA 36(4), 2022; arXiv 2203.03341]
struct Parts {
  enum class Format { whole, tf32, fp16, bf16 } format = Format::whole;  ///< whole: not split
  int count = 1;                                                         ///< 1 to 3
  int cut = 0;  ///< the last so many parts are cut, the others rounded to nearest
  /// The elements are first multiplied by a power of two, one for each head or for rows that a
  /// kernel takes together, that brings the largest of them to at least this; 0: they are not.
  /// Elements that no row sees may count too: a kernel may then not claim ignores_hidden_nan.
  double scaled_to = 0;
};
/// TF32, fp16 and bf16 as the formats of parts: digits, range and smallest number.
[[nodiscard]] const ElementFormat& part_format(Parts::Format format);
/// |x - its first `parts` parts| <= this times |x|, for parts that lie in the format's normal
/// range.
[[nodiscard]] double rest_of(const Parts& how, int parts);
/// Absolute error of a part below the format's normal range; of elements after scaling.
[[nodiscard]] double part_floor(const Parts& how);

}  // namespace attest
