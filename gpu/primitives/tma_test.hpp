#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>

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

/// Who pauses in a ring, so that the others run ahead as far as they are let.
enum class SlowSide { none, producer, consumers };

/// Passes `boxes` boxes of 8 rows one after the other through a ring of `stages` places (1 to 4): a
/// warp loads, four warps copy to `out`, 1024 bytes a box.
void launch_ring(const CUtensorMap& map, int boxes, int stages, SlowSide slow, std::byte* out,
                 Device& device);
/// The same by a cluster of two blocks. The map's boxes have 4 rows: each block loads one half of
/// every box, for both. `out`: [block, box]. Only the second block's consumers are slow.
void launch_cluster_ring(const CUtensorMap& map, int boxes, int stages, SlowSide slow,
                         std::byte* out, Device& device);

}  // namespace attest
