#pragma once

#include "gpu/kernels/fp32_wgmma/parameters.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// Choice for which a kernel of the family is compiled.
struct SplitChoice {
  int dim;        ///< D: columns of Q, K, V and O, a multiple of 64
  int consumers;  ///< warpgroups that multiply; each has 64 query rows
  int key_tile;   ///< Bc: 64 or 128
  int stages;     ///< K tiles, and V tiles, in shared memory
  int o_columns;  ///< columns of O that one product makes
  bool overlap, ping_pong, delays;
};

/// The sizes that follow; the letters are those of consumer.cuh.
template <typename Parts_, SplitChoice choice_>
struct SplitShape {
  using Parts = Parts_;
  static constexpr SplitChoice choice = choice_;
  static constexpr int D = choice.dim, Bc = choice.key_tile;
  static constexpr int consumers = choice.consumers, stages = choice.stages;
  static constexpr int o_columns = choice.o_columns;
  /// Half as long chains of Q K^T, whose sums the tensor core cuts. Without overlap the registers
  /// of P V are free then.
  static constexpr bool two_score_chains = Parts::is_scaled && !choice.overlap;
  /// bf16 parts hold every bit: a large product then loses none of them to sums of small ones. At D
  /// 128 there are no registers for it.
  static constexpr bool two_value_chains = !Parts::is_scaled && D == 64;
  static constexpr int group_rows = 64, Br = group_rows * consumers;
  /// Gathered rows fill few tiles, the last of them rarely: its warpgroups without rows rest.
  static constexpr bool rests = !Parts::is_scaled && !choice.ping_pong;
  static constexpr int threads = (consumers + 1) * warpgroup_threads;
  enum NamedBarrier : int {  ///< 0 is that of __syncthreads()
    first_turn = 1           ///< ping-pong: the turn of group 0; those of the other groups follow
  };
  /// Registers of a thread: 65,536 shared by a warpgroup that loads and those that multiply.
  /// Loading three parts takes more.
  static constexpr int loader_registers = consumers == 3 ? 32 : Parts::count == 3 ? 40 : 24;
  static constexpr int consumer_registers = consumers == 3 ? 160 : Parts::count == 3 ? 232 : 240;

  // Shared memory: panels of 64 columns, the parts of a tile behind each other.
  static constexpr int panels = D / panel_columns;
  static constexpr int q_panel_bytes = Br * panel_row_bytes, k_panel_bytes = Bc * panel_row_bytes;
  static constexpr int q_part_bytes = panels * q_panel_bytes;
  static constexpr int k_part_bytes = panels * k_panel_bytes;
  static constexpr int q_bytes = Parts::count * q_part_bytes;
  static constexpr int k_bytes = Parts::count * k_part_bytes;  ///< of V as well
  static constexpr int k_at = q_bytes, v_at = k_at + stages * k_bytes;
  static constexpr int barriers_at = v_at + stages * k_bytes;
  static constexpr int barriers = 1 + 4 * stages;  ///< Q; full and empty, of K and V stages
  static constexpr int shared_bytes = barriers_at + 8 * barriers + swizzle_bytes;  // to align

  static_assert(consumers == 2 || consumers == 3);
  static_assert(Parts::is_scaled || Br == bf16_tile_rows);
  static_assert(D % panel_columns == 0 && Bc % 64 == 0 && D % o_columns == 0);
  static_assert(!choice.overlap || (Bc == 64 && o_columns == D));
};

}  // namespace attest
