#pragma once

#include "core/attention/operation.hpp"
#include "core/operations/forward.hpp"

namespace attest {

/// Attention of codes: O and LSE of forward_operation for the numbers that Problem::codes and
/// scales of fp32 or ue8m0 beside them stand for. Those are given and exact; what rounding the
/// original values to them cost is the quantiser's affair. Codes of 4 bits lie two a byte, the even
/// column's in the low half, and each row begins with a byte of its own. Q, K, V, O and LSE have
/// forward's shapes and numbers, q_scale, k_scale and v_scale those of scales_shape(), whatever the
/// lengths and pages.
extern const Operation quantised_operation;

namespace quantised {
inline constexpr InputIndex q = forward::q, k = forward::k, v = forward::v;
inline constexpr InputIndex q_scale{3}, k_scale{4}, v_scale{5};
inline constexpr OutputIndex o = forward::o, lse = forward::lse;

/// Q, K and V that codes and scales stand for, exact.
[[nodiscard]] RealInputs numbers_of(const Problem& problem, const Inputs& inputs);
}  // namespace quantised

}  // namespace attest
