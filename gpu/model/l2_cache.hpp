#pragma once

#include <cstdint>
#include <vector>

namespace attest {

/// Bytes that passed the cache on either side. All are whole sectors.
struct L2Counts {
  std::int64_t requested_read = 0, requested_written = 0;  ///< by SMs
  std::int64_t dram_read = 0, dram_written = 0;

  /// Share of the sectors that SMs read which needed no memory; 1 when they read none.
  [[nodiscard]] double read_hit_rate() const;
  /// Share of all sectors that needed no memory. A write needs none at once and counts as a hit, as
  /// profilers have it.
  [[nodiscard]] double hit_rate() const;
};

struct L2Shape {
  std::int64_t bytes = 0;  ///< 0: no cache; every access goes to memory
  int ways = 16;
  std::int64_t line_bytes = 128;
  std::int64_t sector_bytes = 32;  ///< unit of traffic; at most 32 a line
};

/// A set-associative cache whose lines consist of sectors. Sets are hashed, so that no stride is
/// bad; the least recently used line of a set is replaced; a write allocates without fetching, as
/// whole sectors are written; changed sectors go to memory when their line is replaced or at
/// flush().
class L2Cache {
 public:
  /// Makes an empty cache. Throws InvalidInput for a shape that is none: sizes that do not divide,
  /// no ways.
  explicit L2Cache(const L2Shape& shape);

  /// `address` + `bytes` must stay below 2^32 lines.
  void read(std::int64_t address, std::int64_t bytes) { access(address, bytes, false); }
  void write(std::int64_t address, std::int64_t bytes) { access(address, bytes, true); }
  /// Writes back what was changed; the cache is empty afterwards.
  void flush();

  [[nodiscard]] const L2Counts& counts() const { return counts_; }
  [[nodiscard]] const L2Shape& shape() const { return shape_; }

 private:
  struct Line {
    std::uint32_t number = 0;
    std::uint32_t valid = 0, changed = 0;  ///< a bit a sector
  };

  void access(std::int64_t address, std::int64_t bytes, bool is_write);
  void access_line(std::uint32_t number, std::uint32_t sectors, bool is_write);
  void write_back(const Line& line);

  L2Shape shape_;
  std::int64_t sets_ = 0;
  std::vector<Line> lines_;  ///< sets_ x ways, in each set the most recently used first
  L2Counts counts_;
};

}  // namespace attest
