#include "gpu/model/l2_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/error.hpp"

namespace attest {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Sectors first to last of a line, as bits.
std::uint32_t sector_bits(std::int64_t first, std::int64_t last) {
  const auto count = static_cast<unsigned>(last - first + 1);
  const std::uint32_t ones = count >= 32 ? ~0U : (1U << count) - 1U;
  return ones << static_cast<unsigned>(first);
}

}  // namespace

double L2Counts::read_hit_rate() const {
  return share(requested_read - dram_read, requested_read);
}

double L2Counts::hit_rate() const {
  return share(requested_read + requested_written - dram_read, requested_read + requested_written);
}

L2Cache::L2Cache(const L2Shape& shape) : shape_(shape) {
  const bool is_shape = shape.bytes >= 0 && shape.ways >= 1 && shape.sector_bytes >= 1 &&
                        shape.line_bytes % shape.sector_bytes == 0 &&
                        shape.line_bytes >= shape.sector_bytes &&
                        shape.line_bytes / shape.sector_bytes <= 32;
  if (!is_shape) {
    throw InvalidInput(fmt::format(
        "L2 cache of {} bytes, {} ways, lines of {} bytes, sectors of {}; allowed: at least one "
        "way and 1 to 32 whole sectors a line",
        shape.bytes, shape.ways, shape.line_bytes, shape.sector_bytes));
  }
  if (shape.bytes == 0) return;
  sets_ = std::max<std::int64_t>(1, shape.bytes / (shape.ways * shape.line_bytes));
  lines_.resize(static_cast<std::size_t>(sets_ * shape.ways));
}

void L2Cache::access(std::int64_t address, std::int64_t bytes, bool is_write) {
  const std::int64_t end = address + bytes;
  while (address < end) {
    const std::int64_t line = address / shape_.line_bytes;
    const std::int64_t begin_of_line = line * shape_.line_bytes;
    const std::int64_t last = std::min(end, begin_of_line + shape_.line_bytes) - 1;
    access_line(static_cast<std::uint32_t>(line),
                sector_bits((address - begin_of_line) / shape_.sector_bytes,
                            (last - begin_of_line) / shape_.sector_bytes),
                is_write);
    address = last + 1;
  }
}

void L2Cache::access_line(std::uint32_t number, std::uint32_t sectors, bool is_write) {
  const std::int64_t touched = std::popcount(sectors) * shape_.sector_bytes;
  (is_write ? counts_.requested_written : counts_.requested_read) += touched;
  if (sets_ == 0) {
    (is_write ? counts_.dram_written : counts_.dram_read) += touched;
    return;
  }
  // A multiple of the golden ratio spreads neighbouring lines evenly over the sets.
  const std::uint64_t hash = (number * std::uint64_t{0x9E3779B97F4A7C15}) >> 32;
  const std::uint64_t set = (hash * static_cast<std::uint64_t>(sets_)) >> 32;
  Line* const first = lines_.data() + set * static_cast<std::uint64_t>(shape_.ways);
  Line* const end = first + shape_.ways;
  Line* at = first;
  while (at != end && (at->number != number || at->valid == 0)) ++at;
  Line line{.number = number};
  if (at != end) {
    line = *at;
  } else {
    at = end - 1;
    write_back(*at);
  }
  if (is_write) {
    line.changed |= sectors;
  } else {
    counts_.dram_read += std::popcount(sectors & ~line.valid) * shape_.sector_bytes;
  }
  line.valid |= sectors;
  std::copy_backward(first, at, at + 1);
  *first = line;
}

void L2Cache::write_back(const Line& line) {
  counts_.dram_written += std::popcount(line.changed) * shape_.sector_bytes;
}

void L2Cache::flush() {
  for (Line& line : lines_) {
    write_back(line);
    line = {};
  }
}

}  // namespace attest
