#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "gpu/simt/execution.hpp"

// Barriers, votes and shuffles under their CUDA names. The line defaults are those of the call.
namespace attest::simt {

template <typename T>
std::uint64_t to_slot(T value) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  std::uint64_t slot = 0;
  std::memcpy(&slot, &value, sizeof(T));
  return slot;
}
template <typename T>
T from_slot(std::uint64_t slot) {
  T value;
  std::memcpy(&value, &slot, sizeof(T));
  return value;
}
template <typename T>
T shuffle(unsigned mask, T value, unsigned source, const char* file, int line) {
  return from_slot<T>(
      warp_exchange(WarpOperation::shuffle, mask, to_slot(value), source, file, line));
}

}  // namespace attest::simt

#define ATTEST_WHERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(ATTEST_WHERE) {
  attest::simt::sync_block(file, line);
}
inline int __syncthreads_count(int predicate, ATTEST_WHERE) {
  return attest::simt::sync_block_count(predicate, file, line);
}
inline int __syncthreads_or(int predicate, ATTEST_WHERE) {
  return attest::simt::sync_block_count(predicate, file, line) != 0;
}
inline int __syncthreads_and(int predicate, ATTEST_WHERE) {
  return attest::simt::sync_block_count(predicate == 0, file, line) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffU, ATTEST_WHERE) {
  attest::simt::warp_exchange(attest::simt::WarpOperation::sync, mask, 0, 0, file, line);
}

// Lanes form groups of `width`, a power of two; a lane whose source lies outside its group keeps
// its own value.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, ATTEST_WHERE) {
  const unsigned w = static_cast<unsigned>(width);
  const unsigned base = attest::simt::lane_index() & ~(w - 1);
  return attest::simt::shuffle(mask, value, base | (static_cast<unsigned>(source) & (w - 1)), file,
                               line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, ATTEST_WHERE) {
  const unsigned lane = attest::simt::lane_index(), w = static_cast<unsigned>(width);
  const unsigned source = (lane & (w - 1)) + delta < w ? lane + delta : lane;
  return attest::simt::shuffle(mask, value, source, file, line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, ATTEST_WHERE) {
  const unsigned lane = attest::simt::lane_index(), w = static_cast<unsigned>(width);
  const unsigned source = (lane & (w - 1)) >= delta ? lane - delta : lane;
  return attest::simt::shuffle(mask, value, source, file, line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, ATTEST_WHERE) {
  const unsigned lane = attest::simt::lane_index(), w = static_cast<unsigned>(width);
  // Groups of a lower number may be read, groups of a higher one may not [CUDA C++ Programming
  // Guide, 10.22].
  const unsigned target = lane ^ static_cast<unsigned>(lane_mask);
  const unsigned source = target < (lane & ~(w - 1)) + w ? target : lane;
  return attest::simt::shuffle(mask, value, source, file, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, ATTEST_WHERE) {
  return static_cast<unsigned>(attest::simt::warp_exchange(attest::simt::WarpOperation::ballot,
                                                           mask, predicate != 0, 0, file, line));
}
inline int __any_sync(unsigned mask, int predicate, ATTEST_WHERE) {
  return attest::simt::warp_exchange(attest::simt::WarpOperation::ballot, mask, predicate != 0, 0,
                                     file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, ATTEST_WHERE) {
  return attest::simt::warp_exchange(attest::simt::WarpOperation::ballot, mask, predicate == 0, 0,
                                     file, line) == 0;
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, ATTEST_WHERE) {
  return static_cast<unsigned>(attest::simt::warp_exchange(
      attest::simt::WarpOperation::match_any, mask, attest::simt::to_slot(value), 0, file, line));
}
inline unsigned __activemask() {
  return attest::simt::active_mask();
}

#define ATTEST_REDUCTION(name, type, operation)                                    \
  inline type name(unsigned mask, type value, ATTEST_WHERE) {                      \
    return attest::simt::from_slot<type>(                                          \
        attest::simt::warp_exchange(attest::simt::WarpOperation::operation, mask,  \
                                    attest::simt::to_slot(value), 0, file, line)); \
  }
ATTEST_REDUCTION(__reduce_add_sync, int, add)
ATTEST_REDUCTION(__reduce_add_sync, unsigned, add)
ATTEST_REDUCTION(__reduce_min_sync, int, min_signed)
ATTEST_REDUCTION(__reduce_min_sync, unsigned, min_unsigned)
ATTEST_REDUCTION(__reduce_max_sync, int, max_signed)
ATTEST_REDUCTION(__reduce_max_sync, unsigned, max_unsigned)
ATTEST_REDUCTION(__reduce_and_sync, unsigned, bit_and)
ATTEST_REDUCTION(__reduce_or_sync, unsigned, bit_or)
ATTEST_REDUCTION(__reduce_xor_sync, unsigned, bit_xor)
#undef ATTEST_REDUCTION
#undef ATTEST_WHERE
