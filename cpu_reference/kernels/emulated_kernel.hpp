#pragma once

#include <string>
#include <vector>

#include "core/run/kernel.hpp"

namespace attest {

/// Roundings of a FlashAttention-2 style kernel [FA2 Alg. 1; order of FlashAttention's softmax.h]:
/// 2^x of fma(x, c, -fl(m c)), c = fl(scale log2 e); P in the input's format before P V, l from P
/// before that rounding; deferred rescale; one division; both products summed by `accumulation`.
[[nodiscard]] PrecisionPlan flash_precision(const Problem& problem, const Plan& plan,
                                            const Accumulation& accumulation);

/// A CPU kernel that replays its own precision plan, for the given formats.
[[nodiscard]] KernelInfo emulated_kernel(std::string name, std::string summary,
                                         const Accumulation& accumulation,
                                         std::vector<ElementType> element_types);

}  // namespace attest
