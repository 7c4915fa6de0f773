#pragma once

#include <cstdint>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"
#include "verify/cases/generators.hpp"

namespace attest {

/// Refusals after which the sizes of a case are rounded.
inline constexpr std::int64_t refusals_as_drawn = 16;

/// The case with rounder sizes, for kernels that refuse most of what is drawn: lengths that are
/// multiples of 16, 64, 128 and more and at least one of them, head dims of 64 and 128, no grouped
/// heads, in the end one head with as many queries as keys. `refused`, the number of
/// attempts that the kernel refused before, says how round; below refusals_as_drawn the case stays
/// as it is. Lengths grow to at most four times the options' largest; head dims that the kernel or
/// the input family lists stay.
[[nodiscard]] Case rounded_case(const KernelInfo& kernel, const GeneratorOptions& options, Case c,
                                std::int64_t refused);

}  // namespace attest
