#pragma once

#include "core/attention/tensor_list.hpp"
#include "core/records/case.hpp"

namespace attest {

// Operands of epilogues (core/attention/problem.hpp), drawn by InputSpec::seed, whatever the family
// of Q, K and V. In half of the seeds they are of the sizes that models have; otherwise some of
// them are 0, 1, far larger or far smaller.

/// A gate like O: uniform in [0, 1), as a sigmoid gives it; else also 0, 1, negative ones, up to
/// 1,000 on either side, and 2^-14 times the usual.
[[nodiscard]] Tensor<float> drawn_gate(const Problem& problem, const InputSpec& spec);
/// A residual like O: N(0, 1); else also 0, 1,000 times that and 2^-14 times that. One that cancels
/// O is made by the law that asks for it, which knows O.
[[nodiscard]] Tensor<float> drawn_residual(const Problem& problem, const InputSpec& spec);

}  // namespace attest
