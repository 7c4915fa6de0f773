#pragma once

#include <optional>
#include <string>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// Roundings of a fused backward kernel of which no more is known
/// (core/attention/fused_roundings.hpp), with the tensor cores of GPU 0.
[[nodiscard]] BackwardRoundings fused_backward_roundings(const Problem& problem);

/// Roundings of cuDNN's graph as its frontend writes it down: dS is multiplied by the scale, then
/// rounded.
[[nodiscard]] BackwardRoundings cudnn_backward_roundings(const Problem& problem);

/// A sentence for what no fused backward pass claims: sizes, rows without keys, scales that are not
/// positive normal numbers.
[[nodiscard]] std::optional<std::string> why_no_fused_backward(const Problem& problem);
[[nodiscard]] std::optional<std::string> why_no_cudnn_backward(const Problem& problem);

}  // namespace attest
