#include "gpu/primitives/wgmma_descriptor.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>

namespace attest {
namespace {

std::uint64_t bits(std::uint64_t word, int first, int last) {
  return word >> first & ((std::uint64_t{1} << (last - first + 1)) - 1);
}

// The fields of [PTX ISA, wgmma, matrix descriptor]: 0-13 address, 16-29 leading offset, 32-45
// stride offset, 49-51 base offset, 62-63 swizzle.
TEST(WgmmaDescriptor, EachFieldLiesWhereTheIsaPutsItInUnitsOf16Bytes) {
  const std::uint64_t d = wgmma_descriptor(0x12340, 0x2560, 0x7890);
  EXPECT_EQ(bits(d, 0, 13), 0x1234U);
  EXPECT_EQ(bits(d, 16, 29), 0x256U);
  EXPECT_EQ(bits(d, 32, 45), 0x789U);
  EXPECT_EQ(bits(d, 62, 63), 1U) << "the swizzle of 128 bytes is mode 1";
  for (const auto& [first, last] : {std::pair{14, 15}, {30, 31}, {46, 48}, {49, 51}, {52, 61}}) {
    EXPECT_EQ(bits(d, first, last), 0U) << "bits " << first << " to " << last;
  }
}

TEST(WgmmaDescriptor, OnlyTheLow18BitsOfAnAddressCount) {
  for (const std::uint32_t address : {0x0U, 0x400U, 0x1fc00U, 0x20000U, 0x38c00U, 0x3fc00U}) {
    EXPECT_EQ(k_major_descriptor(address), k_major_descriptor(address + 0x40000U));
    EXPECT_EQ(k_major_descriptor(address), k_major_descriptor(address | 0xff000000U));
    EXPECT_EQ(bits(mn_major_descriptor(address, 64), 0, 13), address >> 4);
  }
}

// An operand of wgmma is written as [columns / 64][rows][64] elements of 2 bytes.
std::uint64_t place_in_panels(int row, int column, int rows) {
  return static_cast<std::uint64_t>((column / 64 * rows + row) * 128 + column % 64 * 2);
}

TEST(WgmmaDescriptor, OffsetsAreTheDistancesInAnOperandsPanels) {
  for (const int rows : {16, 64, 80, 176, 256}) {
    const std::uint64_t along_rows = mn_major_descriptor(0, rows);
    EXPECT_EQ(bits(along_rows, 16, 29) * 16, place_in_panels(0, 64, rows)) << rows;
    EXPECT_EQ(bits(along_rows, 32, 45) * 16, place_in_panels(8, 0, rows)) << rows;
  }
  EXPECT_EQ(bits(k_major_descriptor(0), 32, 45) * 16, place_in_panels(8, 0, 64));
}

TEST(WgmmaDescriptor, AStepLeadsToThe16ColumnsOr16RowsThatTheNextProductSums) {
  for (const int rows : {64, 80, 128, 256}) {
    for (int k = 0; k < 16; ++k) {
      EXPECT_EQ(k_major_step(k, rows) * 16, place_in_panels(0, 16 * k, rows)) << k << ' ' << rows;
      EXPECT_EQ(mn_major_step(k) * 16, place_in_panels(16 * k, 0, rows)) << k << ' ' << rows;
    }
  }
}

TEST(WgmmaDescriptor, NoStepInSharedMemoryCarriesOutOfTheAddress) {
  constexpr std::uint32_t shared_bytes = 227 * 1024;
  for (const int rows : {64, 128, 256}) {
    const int steps = static_cast<int>(shared_bytes) / (rows * panel_row_bytes) * 4;
    for (std::uint32_t address = 0; address < shared_bytes; address += swizzle_bytes) {
      const std::uint64_t first = k_major_descriptor(address);
      for (int k = 0; k < steps; ++k) {
        const std::uint64_t moved = first + k_major_step(k, rows);
        const std::uint64_t to = address + place_in_panels(0, 16 * k, rows);
        if (to >= shared_bytes) break;
        ASSERT_EQ(moved, k_major_descriptor(static_cast<std::uint32_t>(to)));
      }
    }
  }
}

TEST(SwizzledChunk, EachChunkOfAPanelHasItsOwnPlaceInItsRow) {
  for (const int rows : {8, 64, 256}) {
    std::set<int> places;
    for (int row = 0; row < rows; ++row) {
      for (int chunk = 0; chunk < 8; ++chunk) {
        const int place = swizzled_chunk(row, chunk);
        EXPECT_EQ(place / panel_row_bytes, row);
        EXPECT_EQ(place % 16, 0);
        places.insert(place);
      }
    }
    EXPECT_EQ(std::ssize(places), rows * 8);
  }
}

// Shared memory gives 128 bytes a cycle: 8 chunks of 16 bytes, each from banks of its own.
TEST(SwizzledChunk, TheSameChunkOf8RowsHasBanksOfItsOwnInEachRow) {
  for (int first = 0; first < 64; first += 8) {
    for (int chunk = 0; chunk < 8; ++chunk) {
      std::set<int> banks;
      for (int row = first; row < first + 8; ++row) {
        banks.insert(swizzled_chunk(row, chunk) % panel_row_bytes / 16);
      }
      EXPECT_EQ(banks.size(), 8U) << "rows " << first << " on, chunk " << chunk;
    }
  }
}

// CU_TENSOR_MAP_SWIZZLE_128B and wgmma's mode 1: bits 4 to 6 of an address XOR bits 7 to 9.
TEST(SwizzledChunk, IsAFunctionOfAddressBitsAloneAndRepeatsAfter1024Bytes) {
  for (int row = 0; row < 256; ++row) {
    for (int chunk = 0; chunk < 8; ++chunk) {
      const int plain = row * panel_row_bytes + chunk * 16;
      EXPECT_EQ(swizzled_chunk(row, chunk), plain ^ (plain >> 7 & 7) << 4);
      EXPECT_EQ(swizzled_chunk(row + 8, chunk), swizzled_chunk(row, chunk) + swizzle_bytes);
    }
  }
}

static_assert(swizzled_chunk(3, 5) == 3 * 128 + (5 ^ 3) * 16, "usable in constant expressions");

}  // namespace
}  // namespace attest
