#pragma once

#include <array>
#include <cstdint>

#include "core/run/launch_trace.hpp"

namespace attest::simt {

/// What the lanes of a warp access together by one instruction.
struct WarpRequest {
  MemorySpace space = MemorySpace::shared;
  AccessKind kind = AccessKind::read;
  unsigned size_bytes = 4;                   ///< of one lane: 1, 2, 4, 8 or 16
  unsigned lanes = 0;                        ///< a bit for each that takes part
  std::array<std::uintptr_t, 32> address{};  ///< of those lanes
};

struct RequestCost {
  AccessCounts counts;  ///< of this one request
  int worst_ways = 0;   ///< shared memory only
};

/// Shared memory [CUDA C++ Programming Guide, compute capability 5.x and later]: word w, of 4
/// bytes, lies in bank w mod 32; a pass reads one word of each bank and hands it to any number of
/// lanes. Lanes go through in groups: 32 at once when each wants 4 bytes or less, 16 for 8 bytes, 8
/// for 16 bytes. Loads of 8 and 16 bytes take groups twice as large when lanes 2k and 2k + 1 want
/// the same, for all k, or lanes that differ in the second bit do [G. Smith, NVIDIA developer
/// forums, thread 77228]. Global memory: distinct sectors of 32 bytes.
[[nodiscard]] RequestCost cost_of(const WarpRequest& request);

}  // namespace attest::simt
