#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/attention/element_type.hpp"
#include "core/attention/stored_row.hpp"

// Rows of tensors in memory, for kernels on the CPU.
namespace attest {

/// Rows of one entry in a tensor.
struct EntryRows {
  std::int64_t at = 0, first = 0, count = 0;
};

/// `starts`: cu_seqlens, or null where every entry has `length` rows of its own.
inline EntryRows entry_rows(const std::int32_t* starts, std::int64_t b, std::int64_t length,
                            const std::int32_t* lengths = nullptr) {
  if (starts == nullptr) return {.at = b, .first = 0, .count = length};
  const std::int64_t count = lengths == nullptr ? starts[b + 1] - starts[b] : lengths[b];
  return {.at = 0, .first = starts[b], .count = count};
}

/// A row of memory as fp32 numbers.
inline void read_row(const void* tensor, std::ptrdiff_t bytes, ElementType type,
                     std::span<float> row) {
  for_each_stored(static_cast<const std::byte*>(tensor) + bytes, type, row.size(),
                  [&](std::size_t c, std::uint32_t bits) { row[c] = decode(type, bits); });
}

/// Rounds once to the type.
inline void write_row(std::span<const float> row, void* tensor, std::ptrdiff_t bytes,
                      ElementType type) {
  store_row(static_cast<std::byte*>(tensor) + bytes, type, row.size(), [&](std::size_t c) {
    return encode(type, static_cast<float>(round_to(type, static_cast<double>(row[c]))));
  });
}

}  // namespace attest
