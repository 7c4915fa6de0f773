#pragma once

#include "core/attention/operation.hpp"

namespace attest {

/// The gradients of attention: dQ, dK and dV from Q, K, V, from O and LSE as a forward pass gave
/// them, and from dO, the gradient with respect to O, and dLSE, that with respect to LSE, which is
/// 0 where it is not given (Problem::lse_gradient). For query row i and each key j that it sees,
///   t = scale q_i.k_j, or c tanh(scale q_i.k_j / c) with a softcap c,   chi = 1 - (t / c)^2, or 1,
///   s = t, or t - slope |distance| with ALiBi, and more by a bias,
///   p = exp(s - LSE_i),   r = dO_i.v_j - delta_i,   dS = p r chi,
///   delta_i = dO_i.O_i - dLSE_i,
///   dV_j = sum p dO_i,   dQ_i = scale sum dS k_j,   dK_j = scale sum dS q_i,
/// the sums of a key over all rows that see it, of all query heads that share its KV head. O and
/// LSE are taken as they are given: with those of an exact forward pass this is the gradient, with
/// others it is what a backward pass is to make of them. A row that sees no key has dQ = 0,
/// whatever its dLSE is, a key that no row sees dK = dV = 0.
///
/// Q, O's gradient and the others have the shapes of the forward pass
/// (core/operations/forward.hpp); dQ, dK and dV those of Q, K and V. LSE, a natural
/// logarithm, and dLSE are fp32 and [batch, query_heads, query_len]; all else has the problem's
/// element type.
///
/// It has all score modifications of a Problem. Slopes, bias and sinks lie as in the forward pass.
/// Slopes have no gradient. With a dropout the weights fall that fell in the forward pass, by the
/// same seed and offset: with d_ij = 0 or 1 / (1 - dropout)
///   r = d dO_i.v_j - delta_i,   dV_j = sum d p dO_i,
/// p being the weight before, as LSE is that without dropout, and O that with it.
///
/// Sinks have one [1, query_heads, 1, 1] in fp32: LSE has the sink in it, so that the weights of a
/// row sum to 1 - p with p = exp(sink - LSE_i), and
///   dsink = -sum p delta_i
/// over all rows of the head, of all entries, those that see no key among them. A sink of -infinity
/// is none: its gradient is 0.
///
/// A bias has one of its own shape in fp32, which no softcap flattens: of an element that is added
/// to the scores of query i and key j
///   dbias = sum p r
/// over the entries and query heads that share the element and in which the row sees the key. It is
/// 0 where none does: past an entry's lengths, say, and where the bias is -infinity.
extern const Operation backward_operation;

/// Tensors of backward_operation, by number. The first three are those of the forward pass.
namespace backward {
inline constexpr InputIndex q{0}, k{1}, v{2}, o{3}, lse{4}, d_o{5}, d_lse{6}, sinks{7}, slopes{8},
    bias{9};
inline constexpr OutputIndex dq{0}, dk{1}, dv{2}, d_sinks{3}, d_bias{4};

/// The problem of the forward pass whose gradients are asked for.
[[nodiscard]] Problem forward_problem(const Problem& problem);
/// Inputs of that forward pass, among those of the backward pass.
[[nodiscard]] Inputs forward_inputs(const Problem& problem, const Inputs& inputs);
}  // namespace backward

}  // namespace attest
