#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/model/device_table.hpp"

namespace attest {

/// Resources of an SM that a block of a launch takes.
struct BlockNeeds {
  std::int64_t threads = 1;
  std::optional<std::int64_t> registers_per_thread{};  ///< nothing: not known, does not limit
  std::int64_t shared_bytes = 0;                       ///< static and dynamic, without the reserve
};

enum class Limiter : int { warps, blocks, registers, shared_memory };
/// Name of a limiter in words: `shared memory`.
[[nodiscard]] std::string_view name_of(Limiter limiter);

struct Occupancy {
  // Blocks of an SM when nothing else limits.
  std::int64_t by_warps = 0, by_blocks = 0, by_registers = 0, by_shared = 0;
  std::int64_t blocks = 0;           ///< the least of them; 0: a block does not fit
  double share = 0;                  ///< their warps / the warps that an SM could hold
  std::vector<Limiter> limiters{};   ///< those that allow no more than `blocks`
  std::int64_t resident_blocks = 0;  ///< on the whole GPU at a time; at most the grid
  double share_of_grid = 0;          ///< `share` on an SM that has its even part of the grid
  std::int64_t idle_sms = 0;         ///< SMs for which the grid has no block
};

/// Number of blocks that an SM holds and why no more, counted as cuda_occupancy.h does: registers
/// in units of a warp, warps spread over the SM's sub-partitions, shared memory with the driver's
/// reserve. `grid_blocks` blocks are launched.
[[nodiscard]] Occupancy occupancy_of(const GpuModel& gpu, const BlockNeeds& needs,
                                     std::int64_t grid_blocks);

/// Blocks that the whole GPU holds at a time, as a kernel is told that asks for so many: at least
/// 1, since of a block that does not fit the launch itself says what it lacks.
[[nodiscard]] std::int64_t blocks_at_once(const GpuModel& gpu, const BlockNeeds& needs);

}  // namespace attest
