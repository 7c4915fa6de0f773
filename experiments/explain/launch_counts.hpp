#pragma once

#include <vector>

#include "core/records/measurement.hpp"
#include "experiments/study/run.hpp"
#include "gpu/model/device_table.hpp"

namespace attest {

/// Model of launches that constraints can ask, with the roofs of the GPU and, of a kernel that no
/// GPU times, the counts of `attest explain`, scaled to the problem: what an executor's study
/// measures in the place of times. Explanations share their short runs; threads may call it at a
/// time.
[[nodiscard]] LaunchModel launch_counts(const GpuModel& gpu);

}  // namespace attest
