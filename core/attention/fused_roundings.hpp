#pragma once

#include "core/attention/accumulation.hpp"
#include "core/attention/backward_roundings.hpp"
#include "core/attention/gradient_roundings.hpp"
#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"

// The roundings of kernels of which no more is known than what any fused kernel does, on hardware
// that multiplies and adds by `products`.
namespace attest {

/// Accumulation assumed where the hardware is unknown: for 16-bit inputs tensor cores of Ampere,
/// whose steps cost more per term than newer ones and than chains of fused multiply-adds; for fp32
/// these chains.
[[nodiscard]] Accumulation usual_products(const Problem& problem);

/// PrecisionPlan of online softmax with fp32 sums, and weights in the inputs' format. Each rounding
/// is the worst that documented interfaces and the hardware allow:
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
[[nodiscard]] PrecisionPlan fused_precision(const Problem& problem, const Accumulation& products);

/// True if the plan is one of fused_precision() over several parts. The keys' order in its sums is
/// then unknown, which its bound allows for and a model of usual errors cannot.
[[nodiscard]] bool has_unknown_order(const PrecisionPlan& plan, const Problem& problem);

/// Roundings of a backward kernel that forms P again from the given LSE, sums in fp32 and rounds P
/// and dS to the inputs' format. As fused_precision() of the forward pass; besides:
///   weights   fl(scale log2 e) times the dot product less fl(LSE log2 e), of which neither
///             cancels, or a scaled score less LSE: ex2.approx of either
///   delta     any order of its terms
///   order     any number of keys and rows in a chain, from one step of a tensor core to all
///   group     dK and dV of each query head are stored in the inputs' format before they are added
///   ftz       subnormal sums are flushed, as atomics in fp32 do
[[nodiscard]] BackwardRoundings fused_backward_roundings(const Problem& problem,
                                                         const Accumulation& products);

/// Roundings of gradients that a framework derives from a forward pass: fused_precision() and
/// fused_backward_roundings(), and dO V^T is a tensor in the inputs' format.
[[nodiscard]] GradientRoundings fused_gradient_roundings(const Problem& problem,
                                                         const Accumulation& products);

}  // namespace attest
