#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/run/launch_trace.hpp"

namespace attest {

/// Accesses of one source line of a kernel to one piece of memory: its load and store instructions
/// added up, as far as the bytes that they touch overlap.
struct AccessLine {
  std::string line;  ///< `k3_sequence_parallel.cu:87`, and where it was inlined from
  AccessKind kind = AccessKind::read;
  int access_bytes = 4;  ///< of one lane
  std::string memory;    ///< `q`; `shared 8192-16384`: bytes of the block's shared memory
  MemorySpace space = MemorySpace::shared;
  AccessCounts counts;
  int worst_ways = 0;
  ByteRange range;  ///< that it touches
};

[[nodiscard]] std::string_view name_of(AccessKind kind);

/// Costliest first: shared memory by passes, global memory by sectors.
[[nodiscard]] std::vector<AccessLine> access_lines(const KernelTrace& trace);

/// Passes through shared memory when every access is made as the source says it, and when each
/// thread's accesses are merged into ones of 16 bytes, the most that a compiler could do.
struct SharedPasses {
  double as_written = 0, merged = 0;
};
[[nodiscard]] SharedPasses shared_passes(const ProblemCounters& counters);

}  // namespace attest
