#pragma once

#include "gpu/kernels/bwd_wgmma/shape.cuh"

namespace attest {

template <typename Shape>
struct BwdWideRings;

/// Sizes of the kernel for head dims past 128 (wide_consumer.cuh). `choice.groups` is 3.
template <typename T_, BwdChoice choice_>
struct BwdWideShape {
  using T = T_;
  using Rings = BwdWideRings<BwdWideShape>;
  static constexpr BwdChoice choice = choice_;
  static constexpr int D = choice.dim;
  static constexpr int Br = bwd_query_tile;
  /// Keys of a tile: as many as a warpgroup has registers for, as D Bc / 128 of a thread hold dV or
  /// dK.
  static constexpr int Bc = D > 192 ? 80 : 96;
  static constexpr int groups = 1, group_keys = Bc;  ///< V is loaded at once
  static constexpr int stages = 2;                   ///< of Q
  static constexpr int do_stages = D > 192 ? 1 : 2;
  static constexpr int k_stages = 1;
  static constexpr int threads = (choice.groups + 1) * warpgroup_threads;
  enum NamedBarrier : int {  ///< 0 is that of __syncthreads()
    stores_dv = 1,  ///< of the warpgroup that sums dV: a panel lies in its tile, or has left
    stores_dk = 2   ///< of the one that sums dK
  };
  /// Registers of a thread: of the group that forms pairs, of those that sum, of the loaders.
  static constexpr int pair_registers = D > 192 ? 104 : 136, sum_registers = D > 192 ? 192 : 176;
  static constexpr int loader_registers = 24;
  static constexpr int registers_at_launch = 65536 / threads / 8 * 8;
  static_assert(pair_registers + 2 * sum_registers + loader_registers <= 4 * registers_at_launch);

  // Shared memory: panels of 64 columns.
  static constexpr int panels = D / panel_columns;
  static constexpr int row_panel_bytes = Br * panel_row_bytes;  ///< of Q, dO
  static constexpr int row_bytes = panels * row_panel_bytes;
  static constexpr int key_panel_bytes = Bc * panel_row_bytes;  ///< of K, V, P, dS
  static constexpr int key_bytes = panels * key_panel_bytes, group_bytes = key_bytes;
  /// dQ leaves in slots of 32 columns.
  static constexpr int dq_slot_columns = 32, dq_slots = 3;
  static constexpr int dq_slot_bytes = Br * dq_slot_columns * 4;
  static constexpr int vector_bytes = Br * 4;
  static constexpr int q_at = 0;
  static constexpr int do_at = q_at + stages * row_bytes;
  static constexpr int k_at = do_at + do_stages * row_bytes;
  static constexpr int v_at = k_at + key_bytes;
  static constexpr int p_at = v_at + key_bytes;
  static constexpr int ds_at = p_at + key_panel_bytes;
  static constexpr int dq_at = ds_at + key_panel_bytes;
  static constexpr int lse_at = dq_at + dq_slots * dq_slot_bytes;
  static constexpr int delta_at = lse_at + stages * vector_bytes;
  static constexpr int barriers_at = delta_at + do_stages * vector_bytes;
  static constexpr int works = 2;  ///< descriptions of key tiles
  static constexpr int barriers = 2 * (works + stages + do_stages + 4 + dq_slots);
  static constexpr int works_at = barriers_at + (8 * barriers + 15) / 16 * 16;
  static constexpr int shared_bytes = works_at + works * static_cast<int>(sizeof(BwdWork));
  static_assert(D % panel_columns == 0 && key_panel_bytes % swizzle_bytes == 0 &&
                shared_bytes <= 232448);
};

}  // namespace attest
