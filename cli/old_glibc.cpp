// What static libstdc++ and libgcc of g++ 12 ask of glibc 2.36 and 2.35: defined here, so that the
// program starts wherever glibc is 2.34 or newer (Ubuntu 22.04, RHEL 9). Hidden: libraries that the
// program opens keep glibc's own. tests/glibc_test.py sees what else comes to be asked for.

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <sys/random.h>

#include <cstdint>

#define ATTEST_HIDDEN __attribute__((visibility("hidden")))

/// Replacement that std::random_device needs. Ends the program where the kernel has no random
/// numbers, as glibc's does.
extern "C" ATTEST_HIDDEN std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) abort();
  return value;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE  // where glibc has it, libgcc calls it and nothing else

namespace attest {
namespace {

/// Callback of dl_iterate_phdr: ends at the object whose code or data the address wanted lies in.
int note_if_in(dl_phdr_info* object, std::size_t, void* wanted) {
  auto& found = *static_cast<dl_find_object*>(wanted);
  const auto address = reinterpret_cast<std::uintptr_t>(found.dlfo_map_start);
  std::uintptr_t first = UINTPTR_MAX, last = 0, eh_frame = 0;
  bool is_inside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_EH_FRAME) eh_frame = begin;
    if (segment.p_type != PT_LOAD) continue;
    first = begin < first ? begin : first;
    last = begin + segment.p_memsz > last ? begin + segment.p_memsz : last;
    is_inside |= address - begin < segment.p_memsz;
  }
  if (!is_inside) return 0;
  found.dlfo_map_start = reinterpret_cast<void*>(first);
  found.dlfo_map_end = reinterpret_cast<void*>(last);
  found.dlfo_eh_frame = reinterpret_cast<void*>(eh_frame);
  return 1;
}

}  // namespace
}  // namespace attest

/// Replacement that the unwinder needs for each frame that an exception passes. libgcc takes a
/// failure for the end of the stack, so this must find what glibc's finds; the link map, which
/// libgcc does not read, is null.
extern "C" ATTEST_HIDDEN int _dl_find_object(void* address, dl_find_object* found) noexcept {
  *found = {};
  found->dlfo_map_start = address;
  return dl_iterate_phdr(attest::note_if_in, found) == 1 ? 0 : -1;
}

#endif
