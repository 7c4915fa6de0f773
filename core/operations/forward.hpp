#pragma once

#include <vector>

#include "core/attention/operation.hpp"

namespace attest {

/// Attention: O = softmax(scale * Q K^T over the visible keys) V and LSE, the natural logarithm of
/// the sum of the exponentials of the scores. Q [batch, query_heads, query_len, head_dim],
/// K [batch, kv_heads, key_len, head_dim], V [batch, kv_heads, key_len, output_dim()],
/// O [batch, query_heads, query_len, output_dim()], LSE [batch, query_heads, query_len, 1] in fp32.
///
/// Where a Problem has them: sinks and slopes [1, query_heads, 1, 1], bias [batch or 1, query_heads
/// or 1, query_len, key_len], contiguous and in fp32; gate and residual, shaped as O is and in its
/// format, contiguous, packed where O is. What they do, Problem defines.
extern const Operation forward_operation;

/// The tensors of attention, by number.
namespace forward {
inline constexpr InputIndex q{0}, k{1}, v{2}, sinks{3}, slopes{4}, bias{5}, gate{6}, residual{7};
inline constexpr OutputIndex o{0}, lse{1};

/// True if the row sees the key: Problem::sees, and no bias of -infinity hides it.
[[nodiscard]] bool sees(const Problem& problem, const Inputs& inputs, std::int64_t b,
                        std::int64_t h, std::int64_t query, std::int64_t key);
/// The keys that row (b, h, query) sees, ascending.
[[nodiscard]] std::vector<std::int64_t> keys_of_row(const Problem& problem, const Inputs& inputs,
                                                    std::int64_t b, std::int64_t h,
                                                    std::int64_t query);

/// Number of the sinks, the slopes and the bias among the inputs of a forward or a backward pass,
/// whose inputs all that follows takes.
[[nodiscard]] InputIndex sinks_of(const Problem& problem);
[[nodiscard]] InputIndex slopes_of(const Problem& problem);
[[nodiscard]] InputIndex biases_of(const Problem& problem);
/// Sink of a query head; -infinity where there is none.
[[nodiscard]] float sink_of(const Problem& problem, const Inputs& inputs, std::int64_t h);
/// Element of the bias that is added to a score; 0 without a bias.
[[nodiscard]] float bias_of(const Problem& problem, const Inputs& inputs, std::int64_t b,
                            std::int64_t h, std::int64_t query, std::int64_t key);
/// Number that ALiBi adds to a score, exact: -slope |distance|. 0 without slopes.
[[nodiscard]] double alibi_of(const Problem& problem, const Inputs& inputs, std::int64_t b,
                              std::int64_t h, std::int64_t query, std::int64_t key);
/// Number that an element of O is multiplied by; 1 without a gate.
[[nodiscard]] float gate_of(const Problem& problem, const Inputs& inputs, std::int64_t b,
                            std::int64_t h, std::int64_t query, std::int64_t column);
/// Number that is added to an element of O; 0 without a residual.
[[nodiscard]] float residual_of(const Problem& problem, const Inputs& inputs, std::int64_t b,
                                std::int64_t h, std::int64_t query, std::int64_t column);
}  // namespace forward

}  // namespace attest
