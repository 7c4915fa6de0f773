#pragma once

#include <cstdint>

#include "gpu/kernels/bwd_wgmma/parameters.cuh"
#include "gpu/kernels/simt_types.hpp"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// Choice for which a kernel of the family is compiled.
struct BwdChoice {
  int dim;               ///< D: columns that are computed, 64 or 128
  int groups;            ///< warpgroups that multiply; each has 64 keys
  int k_stages;          ///< K tiles in shared memory
  bool overlap = false;  ///< dV and dK of a step run while S of the next is formed
  bool softcap = false;
  bool in_units = false;             ///< dQ is summed as integers (units.cuh)
  SimtTypes simt = SimtTypes::both;  ///< for these types on the executor
};

template <typename Shape>
struct BwdRings;

template <typename T_, BwdChoice choice_>
struct BwdShape {
  using T = T_;
  using Rings = BwdRings<BwdShape>;
  static constexpr BwdChoice choice = choice_;
  static constexpr int D = choice.dim, groups = choice.groups;
  static constexpr int Br = bwd_query_tile, group_keys = 64, Bc = group_keys * groups;
  static constexpr int stages = 2, do_stages = stages;  ///< of Q, dO and dS
  static constexpr int k_stages = choice.k_stages;
  static constexpr int threads = (groups + 1) * warpgroup_threads;
  /// Registers of a thread: 65,536 shared by warpgroups that load and that multiply.
  static constexpr int loader_registers = groups == 2 ? 24 : 32;
  static constexpr int consumer_registers = groups == 2 ? 240 : 160;

  // Shared memory: panels of 64 columns.
  static constexpr int panels = D / panel_columns;
  static constexpr int row_panel_bytes = Br * panel_row_bytes;  ///< of Q, dO, dS
  static constexpr int row_bytes = panels * row_panel_bytes;    ///< of a tile of Q or dO
  static constexpr int key_panel_bytes = Bc * panel_row_bytes;
  static constexpr int key_bytes = panels * key_panel_bytes;    ///< of a tile of K or V
  static constexpr int group_bytes = panels * row_panel_bytes;  ///< of V: a group's keys
  static constexpr int ds_bytes = groups * row_panel_bytes;
  static constexpr int dq_panel_bytes = 4 * bwd_dq_panel_words<choice.in_units>;
  static constexpr int dq_bytes = panels * dq_panel_bytes;
  static constexpr int vector_bytes = Br * 4;
  static constexpr int q_at = 0;
  static constexpr int do_at = q_at + stages * row_bytes;
  static constexpr int ds_at = do_at + stages * row_bytes;
  static constexpr int k_at = ds_at + stages * ds_bytes;
  static constexpr int v_at = k_at + k_stages * key_bytes;
  static constexpr int dq_at = v_at + key_bytes;
  static constexpr int lse_at = dq_at + dq_bytes;
  static constexpr int delta_at = lse_at + stages * vector_bytes;
  /// Units of rows are read until dQ of their step is stored, when Q and dO of it are given back.
  static constexpr int unit_stages = choice.in_units ? 4 : 0;
  static constexpr int units_at = delta_at + stages * vector_bytes;
  static constexpr int barriers_at = units_at + unit_stages * vector_bytes;
  static constexpr int works = 2;  ///< descriptions of key tiles
  static constexpr int barriers =
      2 * (k_stages + groups + stages + stages + stages + panels + works);
  static constexpr int works_at = barriers_at + (8 * barriers + 15) / 16 * 16;
  static constexpr int shared_bytes = works_at + works * static_cast<int>(sizeof(BwdWork));

  /// Registers of a thread when a block begins: all that its warpgroups can give each other. A
  /// group that asks for more waits for ever.
  static constexpr int registers_at_launch = 65536 / threads / 8 * 8;
  static_assert(loader_registers + groups * consumer_registers <=
                (groups + 1) * registers_at_launch);
  static_assert(D % panel_columns == 0 && shared_bytes <= 232448);
};

}  // namespace attest
