#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/simt/running_thread.hpp"

namespace attest::simt {

enum class Access { read, write, atomic };
enum class Region { shared, static_shared, global };

/// The whole check of one word, for whatever the hooks cannot settle with a few comparisons:
/// decides, reports, and records the access. `offset` is that of the word in its region; `bytes`
/// has a bit for every byte touched.
void check_word(const RunningThread& thread, Region region, std::uintptr_t offset, unsigned bytes,
                Access access, ProgramPoint point);

/// Any access, in parts that each lie in one word; memory that is not the device's is ignored. The
/// way of every access of a traced launch: it is counted instead.
void check_range(std::uintptr_t address, std::size_t size, Access access, ProgramPoint point);

/// Says that [address, address + size), whole words, holds no value from now on: a copy to it is
/// under way. False, and nothing is done, when it does not lie in the block's shared memory.
bool forget_shared(std::uintptr_t address, std::size_t size);

/// A number that is not at a multiple of its size: the device would fail.
void report_misaligned(std::uintptr_t address, std::size_t size, Access access, ProgramPoint point);

inline ProgramPoint point_of(const void* return_address) {
  return static_cast<ProgramPoint>(reinterpret_cast<std::uintptr_t>(return_address));
}

// Hooks of several OS threads meet in one cell. Each stamp is true by itself whatever the order, so
// relaxed is enough.
inline Stamp load(const Stamp& stamp) {
  return __atomic_load_n(&stamp, __ATOMIC_RELAXED);
}
inline void store(Stamp& stamp, Stamp value) {
  __atomic_store_n(&stamp, value, __ATOMIC_RELAXED);
}

inline void record_write(Cell& cell, Stamp stamp, ProgramPoint point) {
  store(cell.write, stamp);
  __atomic_store_n(&cell.write_point, point, __ATOMIC_RELAXED);
}
inline void record_read(Cell& cell, Stamp stamp, ProgramPoint point) {
  store(cell.read, stamp);
  __atomic_store_n(&cell.read_point, point, __ATOMIC_RELAXED);
}

}  // namespace attest::simt
