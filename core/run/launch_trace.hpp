#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/attention/paging.hpp"
#include "core/run/device.hpp"

// What an executor that sees every memory access can say about a kernel without a profiler. All
// counts are sums over what was traced. A request is one instruction of one warp: the accesses that
// its lanes make together. Instructions are those of the source as the host compiler sees it, not
// SASS: nvcc may merge neighbouring scalar accesses, repeat or drop some (gpu/simt/README.md).
namespace attest {

/// Size of a grid in blocks or of a block in threads.
struct Extent3 {
  std::int64_t x = 1, y = 1, z = 1;

  [[nodiscard]] constexpr std::int64_t count() const { return x * y * z; }
  friend bool operator==(const Extent3&, const Extent3&) = default;
};

/// One launch as the host asked for it.
struct LaunchConfiguration {
  std::string kernel;  ///< such as `k3_sequence_parallel<2>`; see kernel_name_of()
  Extent3 grid, block;
  std::int64_t dynamic_shared_bytes = 0;

  friend bool operator==(const LaunchConfiguration&, const LaunchConfiguration&) = default;
};

/// Number of blocks of a launch, whose grid is open, that run at once on the device in question.
using ResidentBlocks = std::function<std::int64_t(const LaunchConfiguration&)>;

/// Conditions of launches beside kernel, problem and Plan.
struct LaunchSetting {
  ResidentBlocks resident_blocks = {};  ///< empty: as many as the executor says
  Paging paging = {};                   ///< of K and V; nothing else has gaps or another order
};

enum class MemorySpace { shared, global };
enum class AccessKind { read, write, atomic };

struct AccessCounts {
  std::int64_t requests = 0;
  /// Requests that some lanes of the warp took no part in, though they had not ended when the
  /// stretch between two barriers began: the sign of a divergent branch or of a ragged edge.
  std::int64_t partial_requests = 0;
  std::int64_t lane_accesses = 0;   ///< thread instructions: a full request has 32
  std::int64_t bytes = 0;           ///< that threads asked for: lane_accesses times their size
  std::int64_t distinct_bytes = 0;  ///< `bytes`, those that several lanes share counted once

  // Shared memory.
  std::int64_t passes = 0;        ///< trips through the 32 banks; profilers say wavefronts
  std::int64_t ideal_passes = 0;  ///< `passes` without a bank conflict
  std::int64_t broadcasts = 0;    ///< requests in which some word goes to more than one lane
  // Global memory.
  std::int64_t sectors = 0;  ///< of 32 bytes that requests touch, before any cache

  AccessCounts& operator+=(const AccessCounts& other);
  friend bool operator==(const AccessCounts&, const AccessCounts&) = default;

  /// Degree n of an n-way bank conflict, averaged over passes: 1 without conflicts, and without
  /// requests.
  [[nodiscard]] double ways() const;
  [[nodiscard]] double sectors_per_request() const;  ///< 0 without requests
  /// Bytes asked for over bytes of the sectors that hold them, 0 to 1; 1 without requests.
  [[nodiscard]] double coalescing_efficiency() const;
};

/// All counts, for whoever adds, scales or prints them.
[[nodiscard]] const std::array<std::int64_t AccessCounts::*, 9>& access_count_members();

/// One load or store instruction.
struct AccessSite {
  std::uint32_t point = 0;  ///< tells instructions of one line apart; differs from build to build
  std::string line;         ///< `gpu/primitives/dot.cuh:12`
  /// The lines that an inlined `line` was called from, innermost first: the last one lies in the
  /// kernel.
  std::vector<std::string> called_from;
  MemorySpace space = MemorySpace::shared;
  AccessKind kind = AccessKind::read;
  int access_bytes = 4;  ///< of one lane
  std::string memory;    ///< `Q`, `Q and others`, `dynamic shared`, `static shared`
  ByteRange range;       ///< of bytes that it touched there; empty when there were others
  AccessCounts counts;
  int worst_ways =
      0;  ///< most words of one bank that one pass group wanted: n of the worst conflict

  /// The line in the kernel itself.
  [[nodiscard]] const std::string& kernel_line() const {
    return called_from.empty() ? line : called_from.back();
  }
};

/// Counts of all launches of one kernel.
struct KernelTrace {
  LaunchConfiguration configuration;  ///< of the first one
  std::int64_t launches = 0;
  std::int64_t blocks = 0;           ///< that ran
  std::int64_t warps = 0;            ///< of the blocks that ran
  std::int64_t barriers = 0;         ///< __syncthreads that blocks passed; each counts once a block
  std::int64_t warp_operations = 0;  ///< shuffles, votes and __syncwarp, each counted once a group
  std::int64_t fmas = 0;             ///< fmaf of all threads
  std::vector<AccessSite> sites;     ///< in order of address of the code

  [[nodiscard]] AccessCounts total(MemorySpace space) const;
  [[nodiscard]] AccessCounts total(MemorySpace space, AccessKind kind) const;
  /// fmaf for each shared-memory load instruction of a thread; 0 without loads.
  [[nodiscard]] double fmas_per_shared_load() const;
};

/// Counts of a whole problem.
struct ProblemCounters {
  std::vector<KernelTrace> kernels;  ///< in order of their first launch
  bool is_exact = false;             ///< a further sample agreed in every count
  std::string basis;                 ///< one sentence: what was run and how counts were continued
};

}  // namespace attest
