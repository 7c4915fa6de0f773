#include "gpu/simt/global_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "core/run/out_of_device_memory.hpp"
#include "gpu/simt/shared_memory.hpp"

namespace attest::simt {
namespace {

// Address space, not memory: a tensor whose elements lie beyond 2^32 of them takes 16 GiB, and as
// much again on both sides.
constexpr std::size_t arena_bytes = std::size_t{64} << 30;
constexpr std::size_t alignment = 256;
constexpr std::size_t host_page_bytes = 4096;
constexpr std::size_t smallest_gap = std::size_t{1} << 20;
/// A shadow is six times as large as what it belongs to. Words of larger pieces have no stamp until
/// they are written or touched: most of a large workspace never is.
constexpr std::size_t largest_marked = std::size_t{1} << 20;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Gives the pages that hold the range back; they read as 0 from then on. Nothing else may lie in
/// them.
void give_back(void* first, std::size_t size_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(first) / host_page_bytes * host_page_bytes;
  const auto end = reinterpret_cast<std::uintptr_t>(first) + size_bytes;
  madvise(reinterpret_cast<void*>(begin), round_up(end - begin, host_page_bytes), MADV_DONTNEED);
}

}  // namespace

bool GlobalMemory::Buffer::is_accessible(std::size_t byte) const {
  return std::ranges::any_of(parts, [byte](const Part& part) {
    return byte >= part.accessible.begin && byte < part.accessible.end;
  });
}

ByteRange GlobalMemory::Buffer::accessible() const {
  if (parts.empty()) return {};
  return {parts.front().accessible.begin, parts.back().accessible.end};
}

template <typename Visit>
void GlobalMemory::for_each_part(std::uintptr_t start, const Buffer& buffer,
                                 const Visit& visit) const {
  const std::size_t offset = start - memory_.base;
  for (const Part& part : buffer.parts) {
    visit((offset + part.extent.begin) / 4, (offset + part.extent.end + 3) / 4);
  }
}

GlobalMemory::GlobalMemory() {
  const auto base = reinterpret_cast<std::uintptr_t>(map_lazily(arena_bytes));
  memory_ = map_shadow(base, arena_bytes);
}

GlobalMemory::~GlobalMemory() {
  munmap(reinterpret_cast<void*>(memory_.base), memory_.size_bytes);
  unmap_shadow(memory_);
}

std::uintptr_t GlobalMemory::place(const std::string& name, std::size_t size) {
  // Before and after each buffer lies at least its own size.
  const std::size_t gap = round_up(std::max(size, smallest_gap), smallest_gap);
  std::uintptr_t start = memory_.base + gap;
  for (const auto& [other, buffer] : buffers_) {
    if (start + size + std::max(gap, round_up(buffer.size_bytes, alignment)) <= other) break;
    start = std::max(start, round_up(other + buffer.size_bytes +
                                         std::max(gap, round_up(buffer.size_bytes, smallest_gap)),
                                     alignment));
  }
  if (start + size + gap > memory_.base + memory_.size_bytes)
    throw OutOfDeviceMemory(fmt::format(
        "buffer {} of {} bytes does not fit into the SIMT executor's {} GiB of global memory", name,
        size, memory_.size_bytes >> 30));
  buffers_[start] = {name, size, {}};
  return start;
}

std::byte* GlobalMemory::add(const BufferImage& image) {
  const std::uintptr_t start = place(image.name, image.size_bytes());
  Buffer& buffer = buffers_[start];
  for (const BufferImage::Piece& piece : image.pieces) {
    std::ranges::copy(piece.bytes, reinterpret_cast<std::byte*>(start + piece.begin));
    buffer.parts.push_back({{piece.begin, piece.begin + piece.bytes.size()}, piece.accessible});
    if (piece.accessible.end - piece.accessible.begin <= largest_marked)
      mark(start, piece.accessible, unwritten);
    for (const ByteRange& range : piece.initialised) mark(start, range, from_host);
  }
  return reinterpret_cast<std::byte*>(start);
}

std::byte* GlobalMemory::add_unwritten(const std::string& name, std::size_t size) {
  const std::uintptr_t start = place(name, size);
  buffers_[start].parts.push_back({{0, size}, {0, size}});
  if (size <= largest_marked) mark(start, {0, size}, unwritten);
  return reinterpret_cast<std::byte*>(start);
}

/// Stamps the words that lie in the range as a whole. Of words at its ends only the bytes inside
/// are noted: as written when the stamp says so; words that are accessible in part keep the stamp
/// of a guard, and find() decides.
void GlobalMemory::mark(std::uintptr_t start, const ByteRange& range, Stamp stamp) {
  const std::size_t offset = start - memory_.base;
  const std::size_t begin = offset + range.begin, end = offset + range.end;
  const std::size_t first = (begin + 3) / 4, last = end / 4;
  for (std::size_t word = first; word < last; ++word) memory_.cells[word] = {stamp, 0, 0, 0};
  if (stamp != from_host) {
    if (first < last) std::memset(memory_.written_bytes + first, 0, last - first);
    return;
  }
  const auto note = [&](std::size_t byte) {
    const std::size_t word = byte / 4;
    memory_.written_bytes[word] |= static_cast<std::uint8_t>(1U << byte % 4);
    Stamp& write = memory_.cells[word].write;
    // Of words that are accessible in part nothing is noted here; those of large pieces have no
    // stamp yet.
    if (write == inaccessible && !holds_word(memory_.base + 4 * word)) return;
    write = memory_.written_bytes[word] == 15 ? from_host : from_host | incomplete;
  };
  for (std::size_t byte = begin; byte < std::min(first * 4, end); ++byte) note(byte);
  for (std::size_t byte = std::max(last * 4, begin); last >= first && byte < end; ++byte)
    note(byte);
}

void GlobalMemory::remove(std::byte* buffer) noexcept {
  const auto start = reinterpret_cast<std::uintptr_t>(buffer);
  const auto found = buffers_.find(start);
  if (found == buffers_.end()) return;
  if (found->second.parts.size() > 1 || found->second.size_bytes > largest_marked) {
    // Pieces and large buffers lie at other addresses in every case: kept, their pages would add up
    // to gigabytes.
    const std::size_t first = (start - memory_.base) / 4, words = found->second.size_bytes / 4 + 1;
    give_back(buffer, found->second.size_bytes);
    give_back(memory_.cells + first, words * sizeof(Cell));
    give_back(memory_.written_bytes + first, words);
    buffers_.erase(found);
    return;
  }
  for_each_part(start, found->second, [&](std::size_t first, std::size_t last) {
    std::fill_n(memory_.cells + first, last - first, Cell{});
    std::memset(memory_.written_bytes + first, 0, last - first);
  });
  buffers_.erase(found);
}

bool GlobalMemory::holds_word(std::uintptr_t address) const {
  std::uintptr_t start = 0;
  const Buffer* const buffer = find(address, start);
  if (buffer == nullptr) return false;
  const std::size_t first = address - start;
  return std::ranges::any_of(buffer->parts, [first](const Part& part) {
    return first >= part.accessible.begin && first + 4 <= part.accessible.end;
  });
}

const GlobalMemory::Buffer* GlobalMemory::find(std::uintptr_t address,
                                               std::uintptr_t& start) const {
  auto after = buffers_.upper_bound(address);
  if (after == buffers_.begin()) return nullptr;
  --after;
  start = after->first;
  return address < start + after->second.size_bytes ? &after->second : nullptr;
}

const GlobalMemory::Buffer* GlobalMemory::find_nearest(std::uintptr_t address,
                                                       std::uintptr_t& start) const {
  const Buffer* nearest = nullptr;
  std::uintptr_t distance = ~std::uintptr_t{0};
  for (const auto& [begin, buffer] : buffers_) {
    const std::uintptr_t end = begin + buffer.size_bytes;
    const std::uintptr_t here = address < begin ? begin - address
                                : address < end ? 0
                                                : address - end;
    if (here >= distance) continue;
    distance = here;
    nearest = &buffer;
    start = begin;
  }
  return nearest;
}

void GlobalMemory::forget_blocks() {
  for (const auto& [start, buffer] : buffers_) {
    for_each_part(start, buffer, [&](std::size_t first, std::size_t last) {
      for (std::size_t word = first; word < last; ++word) {
        Cell& cell = memory_.cells[word];
        if (serial_of(cell.write) >= first_block_serial)
          cell.write = from_host | (cell.write & incomplete);
        if (cell.read != 0) cell.read = 0;  // what was never touched takes no memory
      }
    });
  }
}

}  // namespace attest::simt
