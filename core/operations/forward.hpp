#pragma once

#include "core/attention/operation.hpp"

namespace attest {

/// Attention: O = softmax(scale * Q K^T over the visible keys) V and LSE, the natural logarithm of
/// the sum of the exponentials of the scores. Q [batch, query_heads, query_len, head_dim],
/// K [batch, kv_heads, key_len, head_dim], V [batch, kv_heads, key_len, output_dim()],
/// O [batch, query_heads, query_len, output_dim()], LSE [batch, query_heads, query_len, 1] in fp32.
extern const Operation forward_operation;

/// The tensors of attention, by number.
namespace forward {
inline constexpr InputIndex q{0}, k{1}, v{2};
inline constexpr OutputIndex o{0}, lse{1};
}  // namespace forward

}  // namespace attest
