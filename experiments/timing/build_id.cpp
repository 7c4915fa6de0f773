#include "experiments/timing/build_id.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/fnv1a.hpp"
#include "core/base/hex.hpp"

namespace attest {
namespace {

std::size_t padded(std::size_t size) {
  return (size + 3) / 4 * 4;
}

/// The first object is the program itself.
int read_notes(dl_phdr_info* object, std::size_t /*size*/, void* result) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    const unsigned char* const end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const unsigned char* const name = at + sizeof note;
      const unsigned char* const value = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        *static_cast<std::string*>(result) = to_hex(std::as_bytes(std::span(value, note.n_descsz)));
        return 1;
      }
      at = value + padded(note.n_descsz);
    }
  }
  return 1;
}

std::string hash_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(std::size_t{1} << 20);
  std::uint64_t hash = fnv1a("");
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    hash = fnv1a({block.data(), static_cast<std::size_t>(file.gcount())}, hash);
  }
  return fmt::format("file-{:016x}", hash);
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    std::string noted;
    dl_iterate_phdr(read_notes, &noted);
    return noted.empty() ? hash_of("/proc/self/exe") : noted;
  }();
  return id;
}

std::string build_id_with(const std::vector<std::string>& plugins) {
  std::string id = build_id();
  for (const std::string& plugin : plugins) id += '+' + hash_of(plugin);
  return id;
}

}  // namespace attest
