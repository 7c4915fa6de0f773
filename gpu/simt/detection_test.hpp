#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "core/run/device.hpp"

namespace attest {

/// A kernel with one planted bug and the same kernel without it.
struct DetectionCase {
  std::string name;
  std::string kind;                ///< of the finding that the bug must give
  std::vector<std::string> lines;  ///< markers of the source lines that the finding must name
  int blocks, threads;
  /// `values` holds 2 * blocks * threads + 32 floats, of which the kernel may touch all but the
  /// last 32. `counter` is one unsigned that is 0.
  void (*launch)(Device& device, float* values, unsigned* counter, bool planted, int blocks,
                 int threads);
};

/// For GoogleTest's messages.
inline void PrintTo(const DetectionCase& c, std::ostream* out) {
  *out << c.name;
}

[[nodiscard]] const std::vector<DetectionCase>& detection_cases();

/// Two threads write the two halves of each 4-byte word; with `overlap` both write the lower half.
void launch_halves(Device& device, unsigned short* values, int words, bool overlap);
/// values[1] = values[0], by one thread.
void launch_copy_half(Device& device, unsigned short* values, int from, int to);

}  // namespace attest
