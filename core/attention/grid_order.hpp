#pragma once

#include <cstdint>

#include "core/base/host_device.hpp"

namespace attest {

/// Order in which the blocks of a launch, numbered as the hardware starts them, take the output
/// tiles of a problem. `head` counts all batch * query_heads, `tile` the query tiles of a head.
struct GridOrder {
  enum Value : std::int64_t {
    q_fastest = 1,  ///< G2: all tiles of a head, then the next head: neighbours share K and V
    q_slowest,      ///< G3: all heads, then the next tile: every head's K and V are wanted at once
    grouped,        ///< G4: `group` heads at a time, and among them the head fastest
    launch_per_head,  ///< G5: a launch for each head
    two_dimensional,  ///< G6: tiles along x, heads along y: the same order as q_fastest
    longest_first,    ///< G8: as `grouped`, last tile first: under a causal mask it sees most keys
    paired            ///< G8: tiles 0, T - 1, 1, T - 2, ... of a head: two neighbours see as many
                      ///< keys as any other two
  };
};

/// The output tiles of a problem: heads x tiles of them.
struct TileGrid {
  std::int64_t heads = 1;  ///< batch * query_heads
  std::int64_t tiles = 1;  ///< query tiles of a head

  [[nodiscard]] ATTEST_HOST_DEVICE constexpr std::int64_t size() const { return heads * tiles; }
};

struct TilePosition {
  std::int64_t head = 0, tile = 0;

  friend bool operator==(const TilePosition&, const TilePosition&) = default;
};

/// Output tile that block number `block`, 0 <= block < grid.size(), makes: a bijection for every
/// order and group. `group` is clipped to 1..heads; 0 means all heads. An order of 0 is q_fastest.
ATTEST_HOST_DEVICE constexpr TilePosition tile_position(std::int64_t order, std::int64_t group,
                                                        const TileGrid& grid, std::int64_t block) {
  switch (order) {
    case GridOrder::q_slowest:
      return {block % grid.heads, block / grid.heads};
    case GridOrder::grouped:
    case GridOrder::longest_first: {
      const std::int64_t size = group < 1 || group > grid.heads ? grid.heads : group;
      const std::int64_t first_head = block / (size * grid.tiles) * size;
      const std::int64_t left = grid.heads - first_head;
      const std::int64_t heads = left < size ? left : size;  // the last group may be smaller
      const std::int64_t within = block - first_head * grid.tiles;
      const std::int64_t tile = within / heads;
      return {first_head + within % heads,
              order == GridOrder::grouped ? tile : grid.tiles - 1 - tile};
    }
    case GridOrder::paired: {
      const std::int64_t i = block % grid.tiles;
      return {block / grid.tiles, i % 2 == 0 ? i / 2 : grid.tiles - 1 - i / 2};
    }
    default:
      return {block / grid.tiles, block % grid.tiles};
  }
}

}  // namespace attest
