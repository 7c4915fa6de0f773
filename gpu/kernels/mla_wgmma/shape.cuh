#pragma once

#include "core/base/host_device.hpp"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// Sizes of a block, and where what lies in its shared memory.
template <typename T_>
struct MlaShape {
  using T = T_;
  static constexpr bool listed = false;  ///< lists say which keys a block's rows see
  static constexpr int D = 576;          ///< columns of Q and K
  static constexpr int columns = 512;    ///< of V, the first ones of K, and of O
  static constexpr int rows = 64;        ///< packed rows of a block: a row of products
  static constexpr int tile_keys = 64;   ///< of a step
  static constexpr int stages = 2;       ///< tiles of keys in shared memory
  static constexpr int consumers = 2;    ///< warpgroups that multiply, each for half of O's columns
  static constexpr int group_columns = columns / consumers;
  /// A third warpgroup has a warp that loads for every part of a tile, and one that finds units.
  static constexpr int threads = (consumers + 1) * warpgroup_threads;
  enum NamedBarrier : int {  ///< 0 is that of __syncthreads()
    meet = 1,                ///< both groups that multiply are here
    left = 2,                ///< P of group 0 is there; that of group 1 follows
    alone = 4                ///< of group 0 alone; that of group 1 follows
  };
  static constexpr int loader_registers = 88, consumer_registers = 208;
  /// A block begins with 168 registers a thread, and who asks for more than it has waits for ever.
  static_assert(loader_registers + consumers * consumer_registers <= (consumers + 1) * 168);

  // Panels of 64 columns and 64 rows.
  static constexpr int panels = D / panel_columns;
  static constexpr int group_panels = group_columns / panel_columns;
  static constexpr int panel_bytes = rows * panel_row_bytes;
  static constexpr int tile_bytes = panels * panel_bytes;
  static_assert(rows == tile_keys, "panels of Q and of K are alike");

  static constexpr int q_at = 0;
  static constexpr int k_at = tile_bytes;
  static constexpr int weights_at = k_at + stages * tile_bytes;   ///< P [64, 64]
  static constexpr int references_at = weights_at + panel_bytes;  ///< floats [consumers][rows]
  static constexpr int sums_at =
      references_at + 4 * consumers * rows;  ///< floats [consumers][rows]
  static constexpr int works_at = sums_at + 4 * consumers * rows;
  static constexpr int work_bytes = 128;
  static constexpr int barriers_at = works_at + 2 * work_bytes;
  /// Panels of a stage are loaded and given back in parts: the half of O's first columns, the other
  /// half, and what is no value.
  static constexpr int parts = consumers + 1, no_values = consumers;
  static constexpr int barriers = stages * (panels + parts) + 4;
  static constexpr int shared_bytes = barriers_at + 8 * barriers;
  /// Arrivals that end a phase of a panel's barrier, besides its bytes.
  ATTEST_HOST_DEVICE static constexpr unsigned arrivals_of(int /*panel*/) { return 1; }

  ATTEST_HOST_DEVICE static constexpr int first_panel(int part) { return part * group_panels; }
  ATTEST_HOST_DEVICE static constexpr int past_panel(int part) {
    return part == no_values ? panels : (part + 1) * group_panels;
  }
  /// Panels in the order in which scores are formed, which is about that in which they arrive: what
  /// is no value is given back long before the rest.
  ATTEST_HOST_DEVICE static constexpr int nth_panel(int i) { return (i + panels - 1) % panels; }
  /// So many of them come before the half that the second group gives back.
  static constexpr int early_panels = 1 + group_panels;
};

/// Sizes of a block whose rows see the keys of a list. Warps that loaded boxes gather keys instead.
template <typename T_>
struct MlaListedShape : MlaShape<T_> {
  using Dense = MlaShape<T_>;
  static constexpr bool listed = true;
  /// Every lane arrives behind its copies. Who gathers what is no value says besides which keys of
  /// the tile are seen, and arrives behind that.
  ATTEST_HOST_DEVICE static constexpr unsigned arrivals_of(int panel) {
    return panel < Dense::first_panel(Dense::no_values) ? 32 : 32 + 1;
  }
  /// A bit for each key of a tile: of a stage's tile, and of the one before.
  static constexpr int seen_at = Dense::shared_bytes;
  static constexpr int shared_bytes = seen_at + 8 * 2 * Dense::stages;
};

}  // namespace attest
