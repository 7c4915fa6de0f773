#pragma once

#include "core/attention/operation.hpp"

namespace attest {

/// The gradients of attention as a whole: dQ, dK and dV of sum dO O, from Q, K, V and dO. Whoever
/// computes them forms O and LSE himself, and his own roundings of both count: what a framework
/// derives from a forward pass. A backward pass that is given O and LSE is backward_operation's.
/// With p = exp(s - LSE) and delta_i = dO_i.O_i of the exact O and LSE the formulas are those of
/// core/operations/backward.hpp; a row that sees no key has dQ = 0, a key that no row sees dK = dV
/// = 0. Shapes and formats are those of backward_operation.
extern const Operation gradient_operation;

/// Tensors of gradient_operation, by number. The first three are those of the forward pass.
namespace gradient {
inline constexpr InputIndex q{0}, k{1}, v{2}, d_o{3};
inline constexpr OutputIndex dq{0}, dk{1}, dv{2};
}  // namespace gradient

}  // namespace attest
