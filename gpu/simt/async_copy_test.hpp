#pragma once

#include <vector>

#include "core/run/device.hpp"
#include "gpu/simt/detection_test.hpp"

namespace attest {

/// What can be forgotten around an asynchronous copy.
[[nodiscard]] const std::vector<DetectionCase>& async_copy_cases();

/// One block copies `rows` rows of `columns` elements, `stride` elements apart, from `from` through
/// a tile with the given pitch to `to`, contiguous; only the first `existing` rows exist.
void launch_load_tile(Device& device, const float* from, int stride, int existing, int rows,
                      int columns, int pitch, float* to);
/// The same for elements of two bytes.
void launch_load_tile(Device& device, const unsigned short* from, int stride, int existing,
                      int rows, int columns, int pitch, unsigned short* to);

}  // namespace attest
