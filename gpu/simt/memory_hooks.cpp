#include <cstddef>
#include <cstdint>

#include "gpu/simt/access_check.hpp"
#include "gpu/simt/execution.hpp"
#include "gpu/simt/quick_check.hpp"
#include "gpu/simt/running_thread.hpp"

// The functions that -fsanitize=thread makes the compiler call before every load and store of a
// kernel. The sanitizer's own runtime is not linked. These are the innermost loop of the whole
// executor: an access that is plainly fine costs two loads, a few comparisons and at most one store
// of a stamp; everything else goes to access_check.cpp.
namespace attest::simt {
namespace {

/// Offsets are multiples of `size`, so an access of 4 bytes or less lies in one word. The call of
/// check_word() comes last there, where it costs the common path no saved registers.
template <Access access, Region region, std::size_t size>
[[gnu::always_inline]] inline void check_words(const RunningThread& t, Cell* cells,
                                               std::uintptr_t offset, ProgramPoint point) {
  const auto check = [&](std::uintptr_t at, unsigned bytes) __attribute__((always_inline)) {
    Cell& cell = cells[at / 4];
    const Stamp in_place = Stamp{bytes} << bytes_shift;
    return access == Access::read ? read_quickly<region>(t, cell, in_place, point)
                                  : write_quickly<region>(t, cell, in_place, point);
  };
  if constexpr (size <= 4) {
    const unsigned bytes = size == 4 ? 15U : ((1U << size) - 1) << offset % 4;
    const std::uintptr_t at = size == 4 ? offset : offset & ~std::uintptr_t{3};
    if (!check(at, bytes)) [[unlikely]]
      return check_word(t, region, at, bytes, access, point);
  } else {
    for (std::size_t part = 0; part < size; part += 4)
      if (!check(offset + part, 15U)) [[unlikely]]
        check_word(t, region, offset + part, 15U, access, point);
  }
}

template <Access access, std::size_t size>
[[gnu::always_inline]] inline void hook(const void* address, const void* caller) {
  const RunningThread& t = running_thread;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  const ProgramPoint point = point_of(caller);
  if (const std::uintptr_t shared = a - t.shared.base; shared < t.shared.size_bytes) {
    if (a % size != 0) [[unlikely]]
      return report_misaligned(a, size, access, point);
    if (size > 4 && shared + size > t.shared.size_bytes) [[unlikely]]
      return check_range(a, size, access, point);
    return check_words<access, Region::shared, size>(t, t.shared.cells, shared, point);
  }
  if (const std::uintptr_t global = a - t.global.base; global < t.global.size_bytes) {
    if (a % size != 0) [[unlikely]]
      return report_misaligned(a, size, access, point);
    return check_words<access, Region::global, size>(t, t.global.cells, global, point);
  }
  if (a - t.static_shared.base < t.static_shared.size_bytes ||
      a - t.shared_guards.base < t.shared_guards.size_bytes)
    check_range(a, size, access, point);
}

/// g++ reports what it copies as a struct, float4 and its kin, as a range of bytes. On the GPU
/// those are vector instructions: 8 and 16 bytes must lie at multiples of their size.
void range_hook(const void* address, std::size_t size, Access access, const void* caller) {
  const RunningThread& t = running_thread;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  const bool is_vector = size == 8 || size == 16;
  const bool is_watched =
      a - t.shared.base < t.shared.size_bytes || a - t.global.base < t.global.size_bytes;
  if (is_vector && is_watched && a % size != 0) [[unlikely]]
    return report_misaligned(a, size, access, point_of(caller));
  check_range(a, size, access, point_of(caller));
}

}  // namespace
}  // namespace attest::simt

using attest::simt::Access;
using attest::simt::check_range;
using attest::simt::hook;
using attest::simt::point_of;
using attest::simt::range_hook;

#define ATTEST_HERE __builtin_return_address(0)
#define ATTEST_HOOKS(size)                                                                        \
  void __tsan_read##size(void* a) {                                                               \
    hook<Access::read, size>(a, ATTEST_HERE);                                                     \
  }                                                                                               \
  void __tsan_write##size(void* a) {                                                              \
    hook<Access::write, size>(a, ATTEST_HERE);                                                    \
  }                                                                                               \
  void __tsan_volatile_read##size(void* a) {                                                      \
    hook<Access::read, size>(a, ATTEST_HERE);                                                     \
  }                                                                                               \
  void __tsan_volatile_write##size(void* a) {                                                     \
    hook<Access::write, size>(a, ATTEST_HERE);                                                    \
  }                                                                                               \
  void __tsan_unaligned_read##size(void* a) {                                                     \
    check_range(reinterpret_cast<std::uintptr_t>(a), size, Access::read, point_of(ATTEST_HERE));  \
  }                                                                                               \
  void __tsan_unaligned_write##size(void* a) {                                                    \
    check_range(reinterpret_cast<std::uintptr_t>(a), size, Access::write, point_of(ATTEST_HERE)); \
  }
// Atomic operations of the standard library in a kernel's file: host code, such as shared_ptr.
// Kernels use atomicAdd and its kin.
#define ATTEST_ATOMIC_HOOKS(bits, Word)                                                            \
  Word __tsan_atomic##bits##_load(const Word* a, int) {                                            \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(Word* a, Word v, int) {                                         \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  Word __tsan_atomic##bits##_exchange(Word* a, Word v, int) {                                      \
    return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  Word __tsan_atomic##bits##_fetch_add(Word* a, Word v, int) {                                     \
    return __atomic_fetch_add(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  Word __tsan_atomic##bits##_fetch_sub(Word* a, Word v, int) {                                     \
    return __atomic_fetch_sub(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  Word __tsan_atomic##bits##_fetch_and(Word* a, Word v, int) {                                     \
    return __atomic_fetch_and(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  Word __tsan_atomic##bits##_fetch_or(Word* a, Word v, int) {                                      \
    return __atomic_fetch_or(a, v, __ATOMIC_SEQ_CST);                                              \
  }                                                                                                \
  Word __tsan_atomic##bits##_fetch_xor(Word* a, Word v, int) {                                     \
    return __atomic_fetch_xor(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(Word* a, Word* expected, Word v, int, int) {   \
    return __atomic_compare_exchange_n(a, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(Word* a, Word* expected, Word v, int, int) {     \
    return __atomic_compare_exchange_n(a, expected, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }

extern "C" {
ATTEST_HOOKS(1)
ATTEST_HOOKS(2)
ATTEST_HOOKS(4)
ATTEST_HOOKS(8)
ATTEST_HOOKS(16)
ATTEST_ATOMIC_HOOKS(8, std::uint8_t)
ATTEST_ATOMIC_HOOKS(16, std::uint16_t)
ATTEST_ATOMIC_HOOKS(32, std::uint32_t)
ATTEST_ATOMIC_HOOKS(64, std::uint64_t)
void __tsan_read_range(void* a, unsigned long size) {
  range_hook(a, size, Access::read, ATTEST_HERE);
}
void __tsan_write_range(void* a, unsigned long size) {
  range_hook(a, size, Access::write, ATTEST_HERE);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
void __tsan_init() {}
}
