#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/kernels/fa3_wgmma/parameters.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// Choice for which a kernel of the family is compiled.
struct Fa3Choice {
  int dim;               ///< D: columns of Q, K, V and O that are computed, a multiple of 16
  int consumers;         ///< warpgroups that multiply; each has 64 query rows
  int key_tile;          ///< Bc
  int k_stages;          ///< K tiles in shared memory
  int v_stages;          ///< V tiles there
  int q_stages;          ///< Q tiles there: with 2 the next one arrives while this one is worked on
  int o_panels = 0;      ///< 64 columns of O each that have memory of their own to leave through
  bool overlap = false;  ///< Overlap
  bool ping_pong = false;  ///< PingPong
  bool splits = false;     ///< key splits: partial outputs are written
  bool delays = false;     ///< Delays
  bool ragged = false;     ///< lengths that the device knows, K and V in pages (ragged.cuh)
  bool lists = false;      ///< lists of the keys that a block's rows see
  bool ended = false;      ///< sinks, gates and residuals, and nothing else of `masked`
  bool masked = false;     ///< windows and padding
  bool softcap = false;    ///< of masked ones: scores have a softcap
  bool modified = false;   ///< of masked ones: scores have a bias, or weights fall
  int value_dim = 0;       ///< DV: columns of V and O that are computed, a multiple of 16; 0: dim
};

/// The choice with one more of the fields that are false by default.
constexpr Fa3Choice with(Fa3Choice choice, bool Fa3Choice::*field) {
  choice.*field = true;
  return choice;
}

template <typename T_, Fa3Choice choice_>
struct Fa3Shape {
  using T = T_;
  static constexpr Fa3Choice choice = choice_;
  static constexpr int D = choice.dim, Bc = choice.key_tile, consumers = choice.consumers;
  static constexpr int DV = choice.value_dim == 0 ? D : choice.value_dim;
  static constexpr int group_rows = 64, Br = group_rows * consumers;
  static constexpr int k_stages = choice.k_stages, v_stages = choice.v_stages;
  static constexpr int q_stages = choice.q_stages;
  static constexpr int threads = (consumers + 1) * warpgroup_threads;
  enum NamedBarrier : int {  ///< 0 is that of __syncthreads()
    first_turn = 1,          ///< ping-pong: the turn of group 0; those of groups 1 and 2 follow
    ticket = 8               ///< of the four loading warps: a number has been left
  };
  /// Registers of a thread: 65,536 shared by warpgroups that load and that multiply.
  /// Whoever copies rows itself needs more of them, as does who trims ranges beside a bias's
  /// parameters.
  static constexpr int loader_registers = choice.ragged     ? 56
                                          : choice.modified ? 40
                                          : consumers == 1  ? 56
                                          : consumers == 2  ? 24
                                                            : 32;
  static constexpr int consumer_registers = choice.ragged     ? 152
                                            : choice.modified ? 232
                                            : consumers == 1  ? 256
                                            : consumers == 2  ? 240
                                            : consumers == 3  ? 160
                                                              : 112;

  // Shared memory: panels of 64 columns.
  static constexpr int box_columns = panel_columns, v_writers = 1;
  static constexpr int panels = (D + panel_columns - 1) / panel_columns;
  static constexpr int v_panels = (DV + panel_columns - 1) / panel_columns;
  static constexpr int output_panels = v_panels;
  /// A lane's four columns of O of 16 are neighbours, those of the first 8 before those of the
  /// others in turn (fp8_column()), and not as products leave them.
  static constexpr bool interleaves_columns = false;
  static constexpr int q_panel_bytes = group_rows * panel_row_bytes;
  static constexpr int q_bytes = panels * q_panel_bytes;  ///< of one warpgroup
  static constexpr int kv_panel_bytes = Bc * panel_row_bytes;
  static constexpr int kv_bytes = panels * kv_panel_bytes, v_bytes = v_panels * kv_panel_bytes;
  static constexpr int q_at = 0;
  static constexpr int k_at = q_at + q_stages * consumers * q_bytes;
  static constexpr int v_at = k_at + k_stages * kv_bytes;
  static constexpr int o_at = v_at + v_stages * v_bytes;
  static constexpr int barriers_at = o_at + consumers * choice.o_panels * q_panel_bytes;
  /// Full and empty, of K and V stages and of Q of each warpgroup.
  static constexpr int barriers = 2 * (k_stages + v_stages + q_stages * consumers);
  /// A Q stage is released before the output of its work is written, and that needs the work's
  /// description still: one description more than stages.
  using Work = std::conditional_t<choice.ragged, Fa3RaggedWork,
                                  std::conditional_t<choice.lists, Fa3ListedWork, Fa3Work>>;
  using Parameters = std::conditional_t<
      choice.lists, Fa3ListedParameters,
      std::conditional_t<
          choice.modified, Fa3ModifiedParameters,
          std::conditional_t<choice.masked, Fa3MaskedParameters,
                             std::conditional_t<choice.ended, Fa3EndedParameters, Fa3Parameters>>>>;
  static constexpr int works = q_stages + 1, work_bytes = sizeof(Work);
  static constexpr int works_at = barriers_at + (8 * barriers + 15) / 16 * 16;
  /// Numbers of output tiles on their way from the thread that takes them to the other loading
  /// warps.
  static constexpr int tickets_at = works_at + work_bytes * works * consumers;
  static constexpr int shared_bytes = tickets_at + (choice.ragged ? 16 : 0);

  static_assert(warpgroup_threads * (loader_registers + consumers * consumer_registers) <=
                registers_of_block(threads));
  static_assert(choice.o_panels == 0 ||
                output_panels % (choice.o_panels == 0 ? 1 : choice.o_panels) == 0);
  static_assert(choice.lists + choice.ragged + choice.splits + choice.ended + choice.masked <= 1);
  static_assert(choice.masked || !(choice.softcap || choice.modified));
  static_assert(!choice.modified || (consumers == 2 && !choice.softcap));
  static_assert(DV == D ||
                choice.lists + choice.ragged + choice.splits + choice.ended + choice.masked == 0);
  /// First keys of two groups' windows are so many key tiles apart. As many may wait for a group's
  /// next work before they are given back (Fa3Loader::unread).
  static constexpr int most_unread = (group_rows * (consumers - 1) + Bc - 1) / Bc;
  static_assert(!choice.masked || (choice.overlap && !choice.ping_pong && Bc <= 64 &&
                                   most_unread < k_stages && most_unread < v_stages));
  static_assert(D % 16 == 0 && DV % 16 == 0 && Bc % 16 == 0 && kv_panel_bytes % swizzle_bytes == 0);
};

}  // namespace attest
