#pragma once

#include "core/run/device.hpp"

namespace attest {

/// How a tile is loaded; `widest` by vectors where the rows allow it.
enum class TileLoad { scalar, widest };

/// A load of rows [begin, begin + rows) of `count`, each `stride` floats after the last.
struct LoadCase {
  int count, stride, begin, rows, columns, filled, pitch;
};

/// Loads a tile of rows `pitch` floats apart into shared memory and copies it to out, [rows,
/// filled].
void launch_load(Device& device, const float* from, const LoadCase& c, TileLoad load, float* out,
                 int threads);
/// counts[row * columns + column] += 1 by the thread that visits the element.
void launch_visit(Device& device, int* counts, int rows, int columns, int threads);
/// sums[thread]: the sum over the row of `row_threads` lanes to which the thread belongs.
void launch_row_sums(Device& device, const float* values, float* sums, int row_threads,
                     int threads);

}  // namespace attest
