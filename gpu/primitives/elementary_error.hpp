#pragma once

// What the elementary functions of kernels err by, for PrecisionPlans and tests: 2^-24 is half an
// ulp of 1. gpu/simt/elementary_test.cpp measures both.
namespace attest {

/// Largest relative error of ln_of() (natural_log.cuh): 1 ulp.
inline constexpr double ln_error = 2 * 0x1p-24;

/// |tanh_of(y) - tanh(y)| <= tanh_error |tanh(y)| (softcap.cuh), so never more than tanh_error. In
/// units of 2^-24, worst at 0.55: ex2 4 (2 ulp) and its argument 2.2, both divided by
/// sinh(1.1) > 1.33; 1 - e 0.8, 1 + e 1, reciprocal 0.9, product 1.
inline constexpr double tanh_error = 9 * 0x1p-24;

}  // namespace attest
