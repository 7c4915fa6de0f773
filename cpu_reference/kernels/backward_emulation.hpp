#pragma once

#include "core/attention/backward_roundings.hpp"
#include "core/operations/backward_arguments.hpp"

namespace attest {

/// FlashAttention-2's backward pass on the CPU, key tiles of Plan::key_tile keys, with every
/// rounding at the point that `how` names; dQ of a query row is summed key tile by key tile, dK and
/// dV of a key row by row, in one chain for all query heads of a group or, with kv_parts > 1, in
/// one a head. Sums are chains of fp32 FMAs, and the exponential is the C library's.
///
/// Throws std::logic_error for what it does not replay: sums of tensor cores, LSE times log2 e,
/// another exponential, a score that is not scaled after its sum.
void emulate_backward(const BackwardArguments& arguments, const BackwardRoundings& how);

}  // namespace attest
