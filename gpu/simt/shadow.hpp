#pragma once

#include <cstdint>

// What the executor remembers of every 4-byte word that a kernel may touch: its last write and its
// last read.
//
// A stamp says who, when and which bytes, in 64 bits, most significant first:
//   incomplete 1 | serial 27 | interval 14 | warp epoch 6 | thread 10 | bytes 4 | tag 2
// Blocks get serials in the order of their index, never used again, so one comparison of whole
// stamps answers `before this launch?`, `before this block?`, `before the last barrier?`.
// `interval` counts the block's barriers, `warp_epoch` the warp's __syncwarp since then.
namespace attest::simt {

using Stamp = std::uint64_t;

inline constexpr int bytes_shift = 2, thread_shift = 6, epoch_shift = 16, interval_shift = 22,
                     serial_shift = 36;
// Tags of a write and of a read.
inline constexpr Stamp tag_mask = 3;
inline constexpr Stamp plain_write = 0, atomic_write = 1;
inline constexpr Stamp one_thread = 0, lanes_of_a_warp = 1, warps_of_a_block = 2, many_blocks = 3;
inline constexpr Stamp all_bytes = Stamp{15} << bytes_shift;
inline constexpr Stamp thread_mask = Stamp{1023} << thread_shift;
inline constexpr Stamp epoch_mask = Stamp{63} << epoch_shift;
inline constexpr unsigned last_epoch = 63;  ///< stands for later ones, too: their order is unknown
inline constexpr unsigned last_interval = (1U << 14) - 1;
inline constexpr std::uint64_t serial_limit = std::uint64_t{1} << 27;
/// Some byte of the word was never written: WordState knows which.
inline constexpr Stamp incomplete = Stamp{1} << 63;

// Serials that no block has.
inline constexpr Stamp inaccessible = 0;  ///< a guard, or partly one; or not marked: GlobalMemory
inline constexpr Stamp unwritten = Stamp{1} << serial_shift;
inline constexpr Stamp from_host = Stamp{2} << serial_shift;
inline constexpr std::uint64_t first_block_serial = 3;

inline constexpr std::uint64_t serial_of(Stamp s) {
  return (s & ~incomplete) >> serial_shift;
}
inline constexpr std::uint64_t interval_of(Stamp s) {
  return (s & ~incomplete) >> interval_shift;  // with the serial: names one interval of one block
}
inline constexpr unsigned epoch_of(Stamp s) {
  return static_cast<unsigned>((s & epoch_mask) >> epoch_shift);
}
inline constexpr unsigned thread_of(Stamp s) {
  return static_cast<unsigned>((s & thread_mask) >> thread_shift);
}
inline constexpr unsigned warp_of(Stamp s) {
  return thread_of(s) / 32;
}
inline constexpr unsigned bytes_of(Stamp s) {
  return static_cast<unsigned>(s >> bytes_shift) & 15U;
}

/// Place of an access in the program: low half of the return address. 0 when unknown.
using ProgramPoint = std::uint32_t;

struct Cell {
  Stamp write;
  Stamp read;
  ProgramPoint write_point;
  ProgramPoint read_point;
};

}  // namespace attest::simt
