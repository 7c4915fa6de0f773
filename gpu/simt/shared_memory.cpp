#include "gpu/simt/shared_memory.hpp"

#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"

namespace attest::simt {
namespace {

constexpr std::size_t guard_bytes = 256 * 1024;
constexpr std::size_t mapped_bytes = 3 * guard_bytes;

/// The calling thread's copy of the program's thread-local variables.
ShadowedMemory thread_local_block() {
  ShadowedMemory block;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS || info->dlpi_tls_data == nullptr) continue;
          auto& found = *static_cast<ShadowedMemory*>(result);
          found.base = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data) & ~std::uintptr_t{3};
          found.size_bytes = (info->dlpi_phdr[i].p_memsz + 7) & ~std::size_t{3};
        }
        return 1;  // the first object is the program itself
      },
      &block);
  return block;
}

void drop_stamps(const ShadowedMemory& memory) {
  if (memory.cells != nullptr)
    madvise(memory.cells, memory.size_bytes / 4 * sizeof(Cell), MADV_DONTNEED);
}

}  // namespace

void* map_lazily(std::size_t size_bytes) {
  void* memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw MachineError(fmt::format(
        "the SIMT executor cannot reserve {} GiB of address space: {}; a limit on virtual memory "
        "(ulimit -v) may be set",
        size_bytes >> 30, std::strerror(errno)));
  return memory;
}

ShadowedMemory map_shadow(std::uintptr_t base, std::size_t size_bytes) {
  ShadowedMemory memory{base, size_bytes, nullptr, nullptr};
  const std::size_t words = size_bytes / 4;
  memory.cells = static_cast<Cell*>(map_lazily(words * sizeof(Cell)));
  memory.written_bytes = static_cast<std::uint8_t*>(map_lazily(words));
  return memory;
}

void unmap_shadow(const ShadowedMemory& memory) noexcept {
  if (memory.cells != nullptr) munmap(memory.cells, memory.size_bytes / 4 * sizeof(Cell));
  if (memory.written_bytes != nullptr) munmap(memory.written_bytes, memory.size_bytes / 4);
}

SharedMemory::SharedMemory()
    : all_(map_shadow(reinterpret_cast<std::uintptr_t>(map_lazily(mapped_bytes)), mapped_bytes)) {}

SharedMemory::~SharedMemory() {
  munmap(reinterpret_cast<void*>(all_.base), mapped_bytes);
  unmap_shadow(all_);
  unmap_shadow(static_);
}

ShadowedMemory SharedMemory::dynamic(std::size_t size_bytes) {
  void* start = reinterpret_cast<void*>(all_.base + guard_bytes);
  std::memset(start, 0xff, size_bytes);  // a NaN in every floating-point format
  return {all_.base + guard_bytes, size_bytes, all_.cells + guard_bytes / 4,
          all_.written_bytes + guard_bytes / 4};
}

ShadowedMemory SharedMemory::static_part() {
  const ShadowedMemory block = thread_local_block();
  if (block.size_bytes == 0) return {};
  if (block.base != static_.base) {  // first use, or another OS thread runs us now
    unmap_shadow(static_);
    static_ = {};
    static_ = map_shadow(block.base, block.size_bytes);
  }
  return static_;
}

void SharedMemory::forget() {
  drop_stamps(all_);
  drop_stamps(static_);
}

}  // namespace attest::simt
