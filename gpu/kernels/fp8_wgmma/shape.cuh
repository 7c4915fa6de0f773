#pragma once

#include "gpu/kernels/fa3_wgmma/shape.cuh"

namespace attest {

/// Sizes of a block that multiplies codes of e4m3. Tiles are panels of 128 bytes, as those of
/// 16-bit numbers are, and a panel holds 128 columns. `T`: of O. V comes as it lies in memory (raw)
/// and is transposed into a tile of its own, whose rows are columns of V and whose bytes are keys:
/// products of codes take no other.
template <typename T_, Fa3Choice choice_>
struct Fp8Shape {
  using T = T_;
  using Work = Fa3Work;
  using Parameters = Fa3Parameters;
  static constexpr Fa3Choice choice = choice_;
  static constexpr int D = choice.dim, Bc = choice.key_tile, consumers = choice.consumers;
  static constexpr int DV = D;
  static constexpr int group_rows = 64, Br = group_rows * consumers;
  static constexpr int k_stages = choice.k_stages, v_stages = choice.v_stages;
  static constexpr int q_stages = choice.q_stages;
  static constexpr int threads = (consumers + 1) * warpgroup_threads;
  /// Warps of the loading warpgroup that transpose V: all but the first, which asks for copies.
  static constexpr int transposing_warps = 3, v_writers = transposing_warps;
  enum NamedBarrier : int {  ///< 0 is that of __syncthreads()
    first_turn = 1           ///< ping-pong: the turn of group 0; that of group 1 follows
  };
  static constexpr int loader_registers = consumers == 3 ? 32 : 24;
  static constexpr int consumer_registers = consumers == 3 ? 160 : 240;

  static constexpr int box_columns = 128;
  static constexpr int panels = (D + box_columns - 1) / box_columns, v_panels = panels;
  static constexpr int output_panels = D / panel_columns;
  static constexpr bool interleaves_columns = true;
  static constexpr int q_panel_bytes = group_rows * panel_row_bytes;
  static constexpr int q_bytes = panels * q_panel_bytes;  ///< of one warpgroup
  static constexpr int kv_panel_bytes = Bc * panel_row_bytes;
  static constexpr int kv_bytes = panels * kv_panel_bytes;  ///< of K, and of V as it comes
  static constexpr int v_bytes = D * panel_row_bytes;       ///< of V transposed
  static constexpr int q_at = 0;
  static constexpr int k_at = q_at + q_stages * consumers * q_bytes;
  static constexpr int raw_v_at = k_at + k_stages * kv_bytes;
  static constexpr int v_at = raw_v_at + v_stages * kv_bytes;
  static constexpr int o_at = v_at + v_stages * v_bytes;
  static constexpr int barriers_at = o_at + consumers * choice.o_panels * q_panel_bytes;
  /// Full and empty, of K and V stages and of Q of each warpgroup, then those of raw V.
  static constexpr int barriers = 2 * (k_stages + v_stages + q_stages * consumers);
  static constexpr int raw_barriers_at = barriers_at + 8 * barriers;
  static constexpr int works = q_stages + 1, work_bytes = sizeof(Work);
  static constexpr int works_at = (raw_barriers_at + 8 * 2 * v_stages + 15) / 16 * 16;
  /// Flags of raw V, one a stage: whether it is past the last tile.
  static constexpr int ends_at = works_at + work_bytes * works * consumers;
  static constexpr int shared_bytes = ends_at + 4 * v_stages;

  static_assert(warpgroup_threads * (loader_registers + consumers * consumer_registers) <=
                registers_of_block(threads));
  static_assert(Bc == 128, "a transposed tile is one panel, and a tile has one scale of K");
  static_assert(D % 64 == 0 && output_panels % choice.o_panels == 0);
};

}  // namespace attest
