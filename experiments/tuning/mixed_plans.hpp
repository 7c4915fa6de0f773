#pragma once

#include <vector>

#include "core/run/kernel.hpp"

namespace attest {

/// A kernel tries its orders, splits and packings with one of its tiles. This puts the tiles of the
/// two fastest Plans with different tiles together with the order, group, scheduling, splits and
/// packing of every offered Plan: the mixtures that the kernel takes and does not offer itself.
[[nodiscard]] std::vector<Plan> mixed_plans(const KernelInfo& kernel, const Problem& problem,
                                            const std::vector<Plan>& offered,
                                            const std::vector<Plan>& fastest_first);

}  // namespace attest
