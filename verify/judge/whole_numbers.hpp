#pragma once

#include "core/attention/element_type.hpp"
#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"

// What laws share whose inputs are whole numbers, so that sums have no roundings.
namespace attest {

/// Largest n such that the format holds all whole numbers from 0 to n: 16 of e4m3, 8 of e5m2, 127
/// of int8, 4 of e2m1, 7 of int4, 2^p of a significand of p bits otherwise.
[[nodiscard]] double largest_whole(ElementType type);

/// Largest n below which sums of whole numbers are exact in any order: 2^24 of fp32, 2^13 of
/// Hopper's sums of e4m3.
[[nodiscard]] double largest_exact_sum(const Accumulation& sum);

/// True if weights of 1 over 2^r keys and small whole V give the correctly rounded mean whatever
/// the order: not so where parts are divided on the way, where a weight of the largest score need
/// not be 1, or where a quotient need not be the nearest number. That sums are exact is not asked.
[[nodiscard]] bool averages_exactly(const PrecisionPlan& precision);

/// Sets all scales of quantised_operation to `value`, in the shapes that the problem gives them.
/// Does nothing to inputs of other operations.
void set_scales(const Problem& problem, Inputs& inputs, float value);

/// Q, K and V as numbers of fp32: what codes and scales stand for, rounded, with scales of 1 beside
/// them; inputs of other operations as they are.
[[nodiscard]] Inputs plain_numbers(const Problem& problem, const Inputs& inputs);

}  // namespace attest
