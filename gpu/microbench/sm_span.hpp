#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/microbench/benchmark.hpp"

namespace attest::microbench {

/// Begin and end of a block, by its SM's cycle counter and by the GPU's nanoseconds.
struct SmSpan {
  std::int64_t begin_clk, end_clk;
  std::int64_t begin_ns, end_ns;
  std::int64_t sm;
  std::int64_t work;  ///< what the kernel counted, if it counts
};

/// Time of a launch of one block an SM.
struct LaunchTime {
  double clk = 0;        ///< mean over the SMs
  double clock_mhz = 0;  ///< mean over the SMs
  double seconds = 0;    ///< first begin to last end
  double work = 0;       ///< mean over the SMs of what the kernel counted
};

[[nodiscard]] int sm_count();

using Launch = std::function<void(SmSpan* spans)>;

/// Runs launch(spans), which starts one block an SM, and waits. Throws MachineError if two blocks
/// shared an SM: rates would be wrong.
LaunchTime time_launch(int blocks, const Launch& launch);

/// A number that follows from the time of a launch.
struct Quantity {
  const char* unit;
  std::function<double(const LaunchTime&)> of;
};
struct Repeats {
  int blocks;
  int launches;
};
/// Appends a reading of each quantity over the same launches, after one that is not counted.
void read_into(std::vector<Reading>& readings, const std::string& name, const Repeats& repeats,
               const Launch& launch, const std::vector<Quantity>& quantities);

}  // namespace attest::microbench
