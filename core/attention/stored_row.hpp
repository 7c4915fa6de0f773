#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/attention/element_type.hpp"

// A row of elements in memory: one after the other, and of elements of 4 bits two a byte.
namespace attest {

// Copies whose sizes the compiler knows: buffers have millions of elements.
inline void copy_unit(void* to, const void* from, std::size_t size) {
  static_assert(std::endian::native == std::endian::little);
  switch (size) {
    case 1:
      std::memcpy(to, from, 1);
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    default:
      std::memcpy(to, from, 4);
  }
}
/// The low bytes of `bits`.
inline void store_unit(std::byte* to, std::uint32_t bits, std::size_t size) {
  copy_unit(to, &bits, size);
}
inline std::uint32_t load_unit(const std::byte* from, std::size_t size) {
  std::uint32_t bits = 0;
  copy_unit(&bits, from, size);
  return bits;
}

/// Calls visit(column, bits in the low bits) for every element of a row.
template <typename Visit>
void for_each_stored(const std::byte* row, ElementType type, std::size_t columns,
                     const Visit& visit) {
  const ElementFormat& format = format_of(type);
  if (format.elements_in_unit == 2) {
    for (std::size_t c = 0; c < columns; ++c) {
      visit(c, std::to_integer<std::uint32_t>(row[c / 2]) >> (c % 2 == 0 ? 0U : 4U) & 0xfU);
    }
    return;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    visit(c, load_unit(row + c * format.size_bytes, format.size_bytes));
  }
}

/// Stores bits_at(column) for every element of a row, and `spare` in the half byte that an odd
/// number of elements of 4 bits leaves.
template <typename BitsAt>
void store_row(std::byte* row, ElementType type, std::size_t columns, const BitsAt& bits_at,
               std::uint32_t spare = 0) {
  const ElementFormat& format = format_of(type);
  if (format.elements_in_unit == 2) {
    for (std::size_t c = 0; c < columns; c += 2) {
      const std::uint32_t high = c + 1 < columns ? bits_at(c + 1) : spare;
      row[c / 2] = static_cast<std::byte>((bits_at(c) & 0xfU) | high << 4U);
    }
    return;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    store_unit(row + c * format.size_bytes, bits_at(c), format.size_bytes);
  }
}

}  // namespace attest
