#pragma once

#include <optional>
#include <string>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// PrecisionPlan of a fused kernel of which no more is known than that it is online softmax with
/// fp32 sums, and weights in the inputs' format. Each rounding is the worst that the documented
/// interface and the hardware allow:
///   score, value  tensor cores: on sm_90 a step adds 16 products and the accumulator at F = 25
///                 bits and truncates [Fasi et al.; measured on an H200]; on sm_80 8 products at
///                 F = 24, which costs more per term and is the plan elsewhere
///   scale         inside the exponent, 2^(s c - m c) with c = scale log2(e): the term for the
///                 rounding of m c is at least what a scale applied to the score costs
///   exp           ex2.approx of a folded argument, 2 ulp; rescales round their product as well
///   P             rounded to the input's format for P V; l adds P before that
///   order         unknown: a rescale after every 16 keys, the depth of one tensor-core step; any
///                 number of those parts may be split and merged by their LSE, the costliest way,
///                 O in fp32 between; l may be one chain over all keys
///   division      an approximate reciprocal (1 ulp) and a product
///   logarithm     lg2.approx, absolute error 2^-21.4 [CUDA C++ Programming Guide, __logf], times
///                 ln 2. l of a row of two keys or more may be 1 + tiny, where only this absolute
///                 error holds: relative to the ln 2 that the bound allows such a row it is 2^-20
///   LSE           m may be kept in units of log2
[[nodiscard]] PrecisionPlan fused_precision(const Problem& problem);

/// Why kernels whose blocks lie along entries and heads cannot be launched: a grid has 65,535 in
/// its second and third dimension. cuDNN and PyTorch's backends return an error beyond (README.md,
/// finding 12).
[[nodiscard]] std::optional<std::string> why_no_such_grid(const Problem& problem);

/// The tensor cores of GPU 0 with 16-bit inputs.
[[nodiscard]] Accumulation tensor_core_here();

}  // namespace attest
