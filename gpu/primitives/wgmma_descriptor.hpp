#pragma once

#include <cstdint>

#include "core/base/host_device.hpp"

namespace attest {

// How wgmma reads an operand from shared memory. Operands lie in tiles of 16-bit elements with the
// 128-byte swizzle: 64 columns of a row stand together in 128 bytes, rows follow each other, and
// the 16-byte chunks of row r are permuted by XOR with r mod 8. A tile with more columns is several
// such panels, one behind the other: [columns / 64][rows][64]. Panels start at multiples of 1024
// bytes, because the XOR acts on address bits. The copy engine writes this form
// (CU_TENSOR_MAP_SWIZZLE_128B).

inline constexpr int panel_columns = 64;
inline constexpr int panel_row_bytes = 128;
inline constexpr int swizzle_bytes = 1024;  ///< after which the pattern repeats: 8 rows

/// Byte in a panel at which the 16-byte chunk `chunk` of row `row` lies.
ATTEST_HOST_DEVICE constexpr int swizzled_chunk(int row, int chunk) {
  return row * panel_row_bytes + ((chunk ^ (row % 8)) * 16);
}

/// Matrix descriptor [PTX ISA, wgmma, matrix descriptor]: address, leading and stride byte offset
/// in units of 16 bytes, swizzle mode 1 (128 bytes).
ATTEST_HOST_DEVICE constexpr std::uint64_t wgmma_descriptor(std::uint32_t address,
                                                            std::uint32_t leading_bytes,
                                                            std::uint32_t stride_bytes) {
  return std::uint64_t{(address & 0x3ffffU) >> 4} | std::uint64_t{leading_bytes >> 4} << 16 |
         std::uint64_t{stride_bytes >> 4} << 32 | std::uint64_t{1} << 62;
}

/// Descriptor of an operand whose sum runs along its rows, as Q and K in Q K^T: 8 rows lie 1024
/// bytes apart; the leading offset is not used.
ATTEST_HOST_DEVICE constexpr std::uint64_t k_major_descriptor(std::uint32_t address) {
  return wgmma_descriptor(address, 16, swizzle_bytes);
}
/// Descriptor of an operand whose sum runs over its rows, as V in P V: 8 rows lie 1024 bytes apart,
/// the next 64 columns a panel of `rows` rows.
ATTEST_HOST_DEVICE constexpr std::uint64_t mn_major_descriptor(std::uint32_t address, int rows) {
  return wgmma_descriptor(address, static_cast<std::uint32_t>(rows * panel_row_bytes),
                          swizzle_bytes);
}

/// Step that is added to a K-major descriptor for the k-th 16 columns of a tile of `rows` rows.
ATTEST_HOST_DEVICE constexpr std::uint64_t k_major_step(int k, int rows) {
  return static_cast<std::uint64_t>((k % 4) * 32 + (k / 4) * rows * panel_row_bytes) >> 4;
}
/// Step that is added to an MN-major descriptor for the k-th 16 rows.
ATTEST_HOST_DEVICE constexpr std::uint64_t mn_major_step(int k) {
  return static_cast<std::uint64_t>(k * 16 * panel_row_bytes) >> 4;
}

}  // namespace attest
