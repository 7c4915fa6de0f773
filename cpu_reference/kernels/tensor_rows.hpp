#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/layout.hpp"
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

/// Rows of a head as fp32 numbers, [count, columns].
inline std::vector<float> read_rows(const void* tensor, const Strides& strides, ElementType type,
                                    const EntryRows& rows, std::int64_t head,
                                    std::int64_t columns) {
  const auto size = static_cast<std::ptrdiff_t>(format_of(type).size_bytes);
  std::vector<float> read(static_cast<std::size_t>(rows.count * columns));
  for (std::int64_t n = 0; n < rows.count; ++n) {
    read_row(tensor, strides.offset(rows.at, head, rows.first + n) * size, type,
             std::span(read).subspan(static_cast<std::size_t>(n * columns),
                                     static_cast<std::size_t>(columns)));
  }
  return read;
}

/// Rounds once to the type.
inline void write_row(std::span<const float> row, void* tensor, std::ptrdiff_t bytes,
                      ElementType type) {
  store_row(static_cast<std::byte*>(tensor) + bytes, type, row.size(), [&](std::size_t c) {
    return encode(type, static_cast<float>(round_to(type, static_cast<double>(row[c]))));
  });
}

}  // namespace attest
