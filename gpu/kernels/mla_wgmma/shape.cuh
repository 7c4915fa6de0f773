#pragma once

#include "core/base/host_device.hpp"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// How a block shares its work out.
enum class MlaForm {
  two_groups,  ///< two warpgroups score and multiply in turn
  scorer       ///< one scores, two multiply
};

/// Sizes of a block, and where what lies in its shared memory. `q_shared`: panels of Q that lie
/// there; a scorer keeps the others in registers.
template <typename T_, MlaForm form_, int q_shared_>
struct MlaShape {
  using T = T_;
  static constexpr MlaForm form = form_;
  static constexpr int D = 576;         ///< columns of Q and K
  static constexpr int columns = 512;   ///< of V, the first ones of K, and of O
  static constexpr int rows = 64;       ///< packed rows of a block: a row of products
  static constexpr int tile_keys = 64;  ///< of a step
  static constexpr bool has_scorer = form == MlaForm::scorer;
  static constexpr int groups = 2;  ///< warpgroups that multiply, each for half of O's columns
  static constexpr int consumers = groups + int{has_scorer};
  static constexpr int group_columns = columns / groups;
  static constexpr int threads = (consumers + 1) * warpgroup_threads;
  static constexpr int loader_registers = has_scorer && q_shared_ < 9 ? 80 : 88;
  static constexpr int multiplier_registers = has_scorer ? 160 : 208;
  static constexpr int scorer_registers = q_shared_ < 9 ? 112 : 104;
  /// A block begins with so many registers a thread, and who asks for more than it has waits for
  /// ever.
  static constexpr int first_registers = has_scorer ? 128 : 168;
  static_assert(loader_registers + groups * multiplier_registers +
                    int{has_scorer} * scorer_registers <=
                (consumers + 1) * first_registers);

  // Panels of 64 columns and 64 rows.
  static constexpr int panels = D / panel_columns;
  static constexpr int panel_bytes = rows * panel_row_bytes;
  static_assert(rows == tile_keys, "panels of Q and of K are alike");
  static constexpr int q_shared = q_shared_;
  static_assert(has_scorer || q_shared == panels);

  // A key tile has parts, which are given back one by one: columns that are values, in pieces of
  // those that one product multiplies, and what is no value. The former come into a ring of
  // `pieces`, the latter into one of `tails`.
  static constexpr int value_parts = has_scorer ? 4 : 2, parts = value_parts + 1;
  static constexpr int part_panels = columns / panel_columns / value_parts;
  static constexpr int pieces = q_shared == panels ? 2 * value_parts : 5 * value_parts / 2;
  static constexpr int tails = q_shared == panels ? 2 : 1;
  static constexpr int piece_bytes = part_panels * panel_bytes;
  static constexpr int weights = 1;  ///< places for P

  static constexpr int q_at = 0;
  static constexpr int pieces_at = q_shared * panel_bytes;
  static constexpr int tails_at = pieces_at + pieces * piece_bytes;
  static constexpr int weights_at = tails_at + tails * panel_bytes;         ///< P [64, 64]
  static constexpr int references_at = weights_at + weights * panel_bytes;  ///< floats [2][rows]
  static constexpr int sums_at = references_at + 4 * 2 * rows;              ///< likewise
  static constexpr int works_at = sums_at + 4 * 2 * rows;
  static constexpr int work_bytes = 128;
  static constexpr int barriers_at = works_at + 2 * work_bytes;
  static constexpr int panel_slots = pieces * part_panels + tails;
  static constexpr int barriers = panel_slots + pieces + tails + 2 * weights + 4;
  static constexpr int shared_bytes = barriers_at + 8 * barriers;
  static_assert(shared_bytes <= 227 * 1024);

  ATTEST_HOST_DEVICE static constexpr int first_panel(int part) { return part * part_panels; }
  ATTEST_HOST_DEVICE static constexpr int past_panel(int part) {
    return part == value_parts ? panels : (part + 1) * part_panels;
  }
  /// The part that is loaded, and given back, as the `i`th: first pieces of both groups first.
  ATTEST_HOST_DEVICE static constexpr int part_in_turn(int i) {
    return has_scorer && i < value_parts ? i % 2 * 2 + i / 2 : i;
  }
};

}  // namespace attest
