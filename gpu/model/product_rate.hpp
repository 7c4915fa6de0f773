#pragma once

#include "core/attention/precision_plan.hpp"
#include "gpu/model/device_table.hpp"

namespace attest {

/// FLOP/s at which a GPU can do the two products of attention as a kernel that declares `precision`
/// does them: on CUDA cores, or on tensor cores in the format of its parts, where a product of
/// numbers in `count` parts is 1, 3 or 6 products. FLOP are those of the problem, so this is what
/// times are held against. 0 where the GPU has no such unit.
[[nodiscard]] double product_flops_per_s(const GpuModel& gpu, ElementType type,
                                         const PrecisionPlan& precision);

}  // namespace attest
