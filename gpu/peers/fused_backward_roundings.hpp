#pragma once

#include <optional>
#include <string>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// Roundings of a fused backward kernel of which no more is known than that it forms P again from
/// the given LSE, sums in fp32 and rounds P and dS to the inputs' format, the worst that documented
/// interfaces and the hardware allow. As fused_precision.hpp for the forward pass; besides:
///   weights   fl(scale log2 e) times the dot product less fl(LSE log2 e), of which neither
///   cancels,
///             or a scaled score less LSE: ex2.approx of either
///   delta     any order of its terms
///   order     any number of keys and rows in a chain, from one step of a tensor core to all
///   group     dK and dV of each query head are stored in the inputs' format before they are added
///   ftz       subnormal sums are flushed, as atomics in fp32 do
[[nodiscard]] BackwardRoundings fused_backward_roundings(const Problem& problem);

/// Of cuDNN's graph as its frontend writes it down: dS is multiplied by the scale, then rounded.
[[nodiscard]] BackwardRoundings cudnn_backward_roundings(const Problem& problem);

/// A sentence for what no fused backward pass claims: sizes, rows without keys, scales that are not
/// positive normal numbers.
[[nodiscard]] std::optional<std::string> why_no_fused_backward(const Problem& problem);
[[nodiscard]] std::optional<std::string> why_no_cudnn_backward(const Problem& problem);

}  // namespace attest
