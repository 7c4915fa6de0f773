#pragma once

#include "core/attention/operation.hpp"

namespace attest {

/// The merge of P = Problem::parts partial results (O_p, LSE_p) of the same queries over disjoint
/// keys into the result over all of them, as splits of the keys and rings of GPUs need it:
///   LSE = ln sum_p exp(LSE_p),   O = sum_p exp(LSE_p - LSE) O_p.
/// A part with LSE_p = -infinity has seen no key and weighs nothing, whatever O_p holds; where no
/// part weighs anything O is 0 and LSE -infinity. A NaN in LSE_p, or in O_p of a part that weighs
/// something, may make its row NaN, and no other.
///
/// O_p [batch, query_heads, parts * query_len, head_dim] in partial_type, row p * query_len + n
/// being query n of part p; LSE_p alike with one column, in fp32. O [batch, query_heads, query_len,
/// head_dim] in element_type, LSE [batch, query_heads, query_len, 1] in fp32, natural logarithm.
extern const Operation combine_operation;

/// Tensors of combine_operation, by number.
namespace combine {
inline constexpr InputIndex partial_o{0}, partial_lse{1};
inline constexpr OutputIndex o{0}, lse{1};
}  // namespace combine

}  // namespace attest
