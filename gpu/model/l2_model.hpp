#pragma once

#include <cstdint>
#include <optional>

#include "gpu/model/cost_model.hpp"
#include "gpu/model/device_table.hpp"
#include "gpu/model/l2_cache.hpp"

namespace attest {

/// A launch as the L2 sees it: tiles that blocks read and write, in the order of the grid.
struct L2Launch {
  Problem problem;
  Tiling tiling;
  Dataflow dataflow = Dataflow::queries_outside;
  std::int64_t grid_order = 0, group = 0;  ///< of output tiles: tile_position()
  std::int64_t resident_blocks = 1;        ///< on the whole GPU at a time
};

/// The device's L2 with lines and sectors as they are, or with coarser ones: a launch is then
/// simulated in fewer steps. Tiles are whole pieces of memory, so this changes little.
[[nodiscard]] L2Shape l2_shape_of(const GpuModel& gpu, std::int64_t line_bytes = 128);

/// Lines that a launch touches, once an access: what simulating it costs, about 20 ns each.
[[nodiscard]] double l2_accesses(const L2Launch& launch, std::int64_t line_bytes);

/// Feeds the cache with the tiles of the launch and returns what passed it, changed lines written
/// back.
///
/// The resident blocks advance together, a key tile each in turn; one that ends is replaced by the
/// next of the grid. On a GPU blocks drift apart: the model shares at least as much as the
/// hardware. queries_outside reads Q, then K and V of each visited tile, and writes O and LSE;
/// keys_outside reads K and V once and Q, O, m and l of every query tile, and writes O, m and l;
/// standard makes S, then P, then O, in three launches whose matrices lie in memory tile by tile;
/// the second one reads a block's rows of S score_reads times and writes P during the last.
/// Throws std::logic_error for Dataflow::unknown.
[[nodiscard]] L2Counts simulate_l2(const L2Launch& launch, const L2Shape& shape);

/// A simulation with the finest lines for which the launch is at most about 2^24 accesses; nothing
/// when even lines as long as a tile leave more than 2^28.
struct L2Simulation {
  L2Counts counts;
  std::int64_t line_bytes = 0;
};
[[nodiscard]] std::optional<L2Simulation> simulate_l2(const L2Launch& launch, const GpuModel& gpu);

}  // namespace attest
