extern "C" {
void __tsan_init() {}
void __tsan_read1(void*) {}
void __tsan_unaligned_read1(void*) {}
void __tsan_read2(void*) {}
void __tsan_unaligned_read2(void*) {}
void __tsan_read4(void*) {}
void __tsan_unaligned_read4(void*) {}
void __tsan_read8(void*) {}
void __tsan_unaligned_read8(void*) {}
void __tsan_read16(void*) {}
void __tsan_unaligned_read16(void*) {}
void __tsan_read_range(void*, unsigned long) {}
void __tsan_write1(void*) {}
void __tsan_unaligned_write1(void*) {}
void __tsan_write2(void*) {}
void __tsan_unaligned_write2(void*) {}
void __tsan_write4(void*) {}
void __tsan_unaligned_write4(void*) {}
void __tsan_write8(void*) {}
void __tsan_unaligned_write8(void*) {}
void __tsan_write16(void*) {}
void __tsan_unaligned_write16(void*) {}
void __tsan_write_range(void*, unsigned long) {}
void __tsan_vptr_update(void**, void*) {}
}
#include "gpu/simt/execution.hpp"
namespace attest::simt {
void before_atomic(const void*, std::size_t) noexcept {}
}  // namespace attest::simt
