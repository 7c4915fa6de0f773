#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/attention/boxed_tensor.hpp"
#include "core/run/device.hpp"

namespace attest {

/// First column, row, head and entry of a box.
using BoxAt = std::array<int, 4>;

/// What may go wrong where threads wait for each other; each bug leaves some waiting for ever.
enum class WaitBug {
  none,
  other_parity,      ///< the loading warp waits for the phase to come
  too_many_bytes,    ///< 16 are announced that no copy brings
  too_few_arrivals,  ///< the barrier counts one more than arrive
  missing_turn,      ///< a group does not pass its turn on
  missing_warp       ///< a warp of four does not come to a product
};

/// Boxes of 8 rows, one below the other from row 0 on, pass through a ring of `stages`: a warp
/// loads, two warps copy to `out`, 1024 bytes a box.
void launch_ring(Device& device, WaitBug bug, const BoxedTensor& from, int boxes, int stages,
                 unsigned* out);
/// Two groups of two warps take `turns` turns each, the first one first; `out` [2 * turns]: whose.
void launch_turns(Device& device, WaitBug bug, int turns, unsigned* out);
/// A product of four warps, or of three.
void launch_lonely_product(Device& device, WaitBug bug);

/// A thread writes 1 to a word that one of another warp reads. Both warps have met at an mbarrier
/// before; only where `is_ordered` they also do between.
void launch_handover(Device& device, bool is_ordered, unsigned* out);

/// Loads a box to shared memory full of 0xff, `misplaced` bytes past a place where one may begin,
/// and copies `bytes` from that place on to `out`.
void launch_load_box(Device& device, const BoxedTensor& from, const BoxAt& at, int misplaced,
                     int bytes, unsigned* out);
/// Stores a box whose image in shared memory is `in`.
void launch_store_box(Device& device, const BoxedTensor& to, const BoxAt& at, const unsigned* in);

/// How a product's operands lie: A [64, depth] in registers or in shared memory, there along its
/// rows or columns, and B [depth, N] along its columns (K-major) or rows.
struct ProductCase {
  bool is_half;
  int n;
  bool a_in_registers, is_a_mn, is_b_mn;
  bool is_awaited = true;
};
inline constexpr int product_depth = 80;  ///< more than a panel has, and no multiple of it
/// d [64, N] = A B, plus d where `adds`; a, b and d row by row, 16-bit elements as bits.
void launch_product(Device& device, const ProductCase& c, const std::uint16_t* a,
                    const std::uint16_t* b, float* d, bool adds);

}  // namespace attest
