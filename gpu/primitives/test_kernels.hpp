#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/codes.hpp"
#include "core/attention/element_type.hpp"
#include "core/run/device.hpp"

namespace attest {
/// First column, row, head and entry of a box; BoxStart as host code knows it.
using BoxCorner = std::array<int, 4>;

/// Bytes after each loaded box that come back too: nothing may have been written there.
inline constexpr int bytes_after_box = 1024;

/// Loads each box into shared memory full of 0xff, and copies that from there to `out`, box by box:
/// 128 * box_rows bytes and bytes_after_box more. `corners` and `out` are in device memory. These
/// functions return without waiting.
void launch_load_boxes(const CUtensorMap& map, const BoxCorner* corners, int boxes, int box_rows,
                       std::byte* out, Device& device);
/// Copies 128 * box_rows bytes a box from `in` to shared memory, and stores the boxes from there.
void launch_store_boxes(const CUtensorMap& map, const BoxCorner* corners, int boxes, int box_rows,
                        const std::byte* in, Device& device);

/// Two blocks in a cluster. Block r sends box r, the rows from r * box_rows on, to slot r of each
/// block in the set targets[r], whose bit i is block i. `out`: [block, slot], 128 * box_rows bytes
/// each, 0xff where nothing arrived.
void launch_multicast(const CUtensorMap& map, std::array<unsigned, 2> targets, int box_rows,
                      std::byte* out, Device& device);

/// Side of a ring that pauses, so that the others run ahead as far as they are let.
enum class SlowSide { none, producer, consumers };

/// Passes `boxes` boxes of 8 rows one after the other through a ring of `stages` places (1 to 4): a
/// warp loads, four warps copy to `out`, 1024 bytes a box.
void launch_ring(const CUtensorMap& map, int boxes, int stages, SlowSide slow, std::byte* out,
                 Device& device);
/// Boxes pass through a ring, by a cluster of two blocks. The map's boxes have 4 rows: each block
/// loads one half of every box, for both. `out`: [block, box]. Only the second block's consumers
/// are slow.
void launch_cluster_ring(const CUtensorMap& map, int boxes, int stages, SlowSide slow,
                         std::byte* out, Device& device);

// Launches return without waiting. Arrays are in device memory.

/// Two warpgroups take turns `rounds` times, the first one first: order[i] is the group whose turn
/// the i-th was. The group `slow` pauses in its turns.
void launch_turns(int rounds, int slow, int* order, Device& device);

/// `steps` times every block adds to its numbers, its index at first, those of the block behind it
/// in its cluster. The block of rank `slow` pauses. out: [block, thread].
void launch_add_neighbours(int clusters, int cluster, int threads, int steps, int slow, int* out,
                           Device& device);

/// Two warpgroups, each with a barrier of its own, meet rounds[group] times. Each time a thread
/// leaves a number in shared memory and finds its neighbour's, whose warp may be slow: wrong[group]
/// counts those that were not there.
void launch_meetings(int rounds_0, int rounds_1, int* wrong, Device& device);

/// elected[call][thread], for two calls and 64 threads: 1 where is_elected().
void launch_elections(int* elected, Device& device);

inline constexpr int held_values = 200;  ///< of a thread, all in registers at once
inline constexpr int holding_threads = 3 * 128;

/// out[i][thread] = in[i][thread] + the sum of in[j][thread] over all j < held_values: a thread
/// needs them all until it has the last. A block of three warpgroups has 168 registers a thread:
/// the second and third take more, which the first has released; then it takes theirs.
void launch_holding(const float* in, float* out, Device& device);

/// out[4 i] and following: what numbers_of_codes() and numbers_of_alternate_codes() make of codes
/// 4 i to 4 i + 3, i below 64. `type` is fp16 or bf16, `code` e4m3 or int8.
void launch_convert_codes(ElementType type, Code code, unsigned* out, Device& device);

/// A product of one warpgroup: D [64, N] = A [64, depth] B [depth, N], plus what D held where
/// `adds`.
struct ProductOperands {
  /// A in device memory, 16-bit elements. In shared memory as it stands: panels
  /// (wgmma_descriptor.hpp) of [64, depth] (K-major) or [depth, 64] (MN-major); for registers [64,
  /// depth], row by row.
  const std::byte* a;
  const std::byte* b;  ///< panels of [N, depth] (K-major) or [depth, N] (MN-major)
  std::size_t a_bytes, b_bytes;
  float* d;   ///< [64, N]
  int depth;  ///< a multiple of 16
  bool adds;
};

/// A form of the instruction that wgmma_test.cu has a kernel of.
struct ProductForm {
  enum class Left { k_major, mn_major, registers };
  ElementType type;
  int width;  ///< N
  Left left;
  bool is_right_k_major;
  /// Returns without waiting.
  void (*launch)(const ProductOperands& operands, Device& device);
};
[[nodiscard]] std::span<const ProductForm> product_forms();
/// The N for which wgmma.cuh spells products.
[[nodiscard]] std::vector<int> product_widths();

/// Two groups in flight: d[0] = A B and d[1] = A C, each [64, 64] of depth 64, of which the first
/// is stored when one group may still be unfinished. bf16; a, b and c: panels of [64, 64], K-major.
void launch_two_groups(const std::byte* a, const std::byte* b, const std::byte* c, float* d,
                       Device& device);

}  // namespace attest
