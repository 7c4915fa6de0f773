#include "gpu/simt/global_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "gpu/simt/shared_memory.hpp"

namespace attest::simt {
namespace {

constexpr std::size_t arena_bytes = std::size_t{16} << 30;
constexpr std::size_t alignment = 256;
constexpr std::size_t smallest_gap = std::size_t{1} << 20;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

GlobalMemory::GlobalMemory() {
  const auto base = reinterpret_cast<std::uintptr_t>(map_lazily(arena_bytes));
  memory_ = map_shadow(base, arena_bytes);
}

GlobalMemory::~GlobalMemory() {
  munmap(reinterpret_cast<void*>(memory_.base), memory_.size_bytes);
  unmap_shadow(memory_);
}

std::byte* GlobalMemory::add(const BufferImage& image) {
  const std::size_t size = image.bytes.size();
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
    throw MachineError(fmt::format(
        "buffer {} of {} bytes does not fit into the SIMT executor's {} GiB of global memory",
        image.name, size, memory_.size_bytes >> 30));
  std::copy(image.bytes.begin(), image.bytes.end(), reinterpret_cast<std::byte*>(start));
  mark(start, image.accessible, unwritten);
  for (const ByteRange& range : image.initialised) mark(start, range, from_host);
  buffers_[start] = {image.name, size, image.accessible, image.initialised};
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
    if (write == inaccessible) return;
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
  const std::size_t words = (found->second.size_bytes + 3) / 4, first = (start - memory_.base) / 4;
  std::fill_n(memory_.cells + first, words, Cell{});
  std::memset(memory_.written_bytes + first, 0, words);
  buffers_.erase(found);
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
    const std::size_t first = (start - memory_.base) / 4, words = (buffer.size_bytes + 3) / 4;
    for (std::size_t word = first; word < first + words; ++word) {
      Cell& cell = memory_.cells[word];
      if (serial_of(cell.write) >= first_block_serial)
        cell.write = from_host | (cell.write & incomplete);
      cell.read = 0;
    }
  }
}

}  // namespace attest::simt
