#pragma once

#include <optional>
#include <string>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// PrecisionPlan of a fused kernel of which no more is known (core/attention/fused_roundings.hpp),
/// with the tensor cores of GPU 0: on sm_90 a step adds 16 products and the accumulator at F = 25
/// bits and truncates [Fasi et al.; measured on an H200]; on sm_80 8 products at F = 24, which
/// costs more per term and is the plan elsewhere.
[[nodiscard]] PrecisionPlan fused_precision(const Problem& problem);

/// A sentence why kernels whose blocks lie along entries and heads cannot be launched, or nothing:
/// a grid has 65,535 in its second and third dimension. cuDNN and PyTorch's backends return an
/// error beyond (README.md, finding 12).
[[nodiscard]] std::optional<std::string> why_no_such_grid(const Problem& problem);

/// The tensor cores of GPU 0 with 16-bit inputs.
[[nodiscard]] Accumulation tensor_core_here();

}  // namespace attest
