#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/attention/element_type.hpp"

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
  const std::size_t size = format_of(type).size_bytes;
  const auto* from = static_cast<const std::byte*>(tensor) + bytes;
  for (float& value : row) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, size);
    value = decode(type, bits);
    from += size;
  }
}

/// Rounds once to the type.
inline void write_row(std::span<const float> row, void* tensor, std::ptrdiff_t bytes,
                      ElementType type) {
  const std::size_t size = format_of(type).size_bytes;
  auto* to = static_cast<std::byte*>(tensor) + bytes;
  for (const float value : row) {
    const auto rounded = static_cast<float>(round_to(type, static_cast<double>(value)));
    const std::uint32_t bits = encode(type, rounded);
    std::memcpy(to, &bits, size);
    to += size;
  }
}

}  // namespace attest
