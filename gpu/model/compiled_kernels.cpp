#include "gpu/model/compiled_kernels.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <gelf.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "core/base/error.hpp"
#include "core/run/kernel_name.hpp"

namespace attest {
namespace {

using Bytes = std::span<const std::byte>;

/// `count` bytes from `at`, or nothing when there are not as many.
Bytes part_of(Bytes bytes, std::uint64_t at, std::uint64_t count) {
  if (at > bytes.size() || count > bytes.size() - at) return {};
  return bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
}

template <typename T>
std::optional<T> value_at(Bytes bytes, std::uint64_t at) {
  const Bytes part = part_of(bytes, at, sizeof(T));
  if (part.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, part.data(), sizeof(T));
  return value;
}

/// An ELF file of 64 bits in memory, read by libelf. Whatever is damaged has no section or name.
class ElfFile {
 public:
  explicit ElfFile(Bytes bytes) {
    elf_version(EV_CURRENT);
    // libelf reads it in place and writes nothing.
    auto* const image = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
    elf_.reset(elf_memory(image, bytes.size()));
    if (elf_kind(elf_.get()) != ELF_K_ELF || gelf_getclass(elf_.get()) != ELFCLASS64 ||
        elf_getshdrstrndx(elf_.get(), &names_) != 0) {
      elf_.reset();
    }
  }

  /// The first section of that name, else nullptr.
  [[nodiscard]] Elf_Scn* find(std::string_view name) const {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_.get(), section)) != nullptr;) {
      const char* const its = elf_strptr(elf_.get(), names_, header(section).sh_name);
      if (its != nullptr && name == its) return section;
    }
    return nullptr;
  }
  [[nodiscard]] static GElf_Shdr header(Elf_Scn* section) {
    GElf_Shdr header{};
    return gelf_getshdr(section, &header) == nullptr ? GElf_Shdr{} : header;
  }
  [[nodiscard]] static Bytes content(Elf_Scn* section) {
    const Elf_Data* const data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return {};
    return {static_cast<const std::byte*>(data->d_buf), data->d_size};
  }
  /// The name of a symbol of the section; empty: it has none.
  [[nodiscard]] std::string_view symbol_name(Elf_Scn* symbols, std::uint32_t index) const {
    GElf_Sym symbol{};
    Elf_Data* const data = elf_getdata(symbols, nullptr);
    if (index > std::numeric_limits<int>::max() ||
        gelf_getsym(data, static_cast<int>(index), &symbol) == nullptr) {
      return {};
    }
    const char* const name = elf_strptr(elf_.get(), header(symbols).sh_link, symbol.st_name);
    return name == nullptr ? std::string_view() : name;
  }

 private:
  std::unique_ptr<Elf, int (*)(Elf*)> elf_{nullptr, elf_end};
  std::size_t names_ = 0;  ///< section of the sections' names
};

std::string readable(std::string_view mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(mangled).c_str(), nullptr, nullptr, &status), std::free);
  return kernel_name_of(text == nullptr ? mangled : std::string_view(text.get()));
}

// The section .nv.info of a cubin is a list of attributes: a format, a code, 16 bits of size or
// value, then that many bytes when the format says so. Those below hold the index of a symbol and a
// number [as `cuobjdump -elf` shows them].
constexpr std::uint8_t with_bytes = 4;
constexpr std::uint8_t register_count = 0x2f, frame_size = 0x11;
// From sm_90 on the section of static shared memory begins with the driver's reserve.
constexpr int reserve_first = 90, reserve_bytes = 1024;
constexpr std::uint64_t most_shared_bytes = 1 << 20;  // no GPU has as much: the file is damaged

void read_cubin(Bytes cubin, int compute_capability, std::vector<CompiledKernel>& out) {
  const ElfFile elf(cubin);
  Elf_Scn* const info = elf.find(".nv.info");
  Elf_Scn* const symbols = elf.find(".symtab");
  if (info == nullptr || symbols == nullptr) return;

  std::map<std::uint32_t, CompiledKernel> kernels;  // by symbol
  std::map<std::uint32_t, int> frames;
  const Bytes attributes = ElfFile::content(info);
  for (std::uint64_t at = 0; at < attributes.size();) {
    const auto format = value_at<std::uint8_t>(attributes, at);
    const auto code = value_at<std::uint8_t>(attributes, at + 1);
    const auto size = value_at<std::uint16_t>(attributes, at + 2);
    if (!format || !code || !size) break;
    at += 4;
    if (*format != with_bytes) continue;
    const auto symbol = value_at<std::uint32_t>(attributes, at);
    const auto value = value_at<std::int32_t>(attributes, at + 4);
    at += *size;
    if (!symbol || !value || *size != 8) continue;
    if (*code == register_count) kernels[*symbol].registers = *value;
    if (*code == frame_size) frames[*symbol] = *value;
  }
  for (auto& [index, kernel] : kernels) {
    const std::string_view mangled = elf.symbol_name(symbols, index);
    if (mangled.empty()) continue;
    kernel.name = readable(mangled);
    kernel.compute_capability = compute_capability;
    kernel.stack_bytes = frames[index];
    if (Elf_Scn* const shared = elf.find(fmt::format(".nv.shared.{}", mangled))) {
      const std::uint64_t size = ElfFile::header(shared).sh_size;
      const std::uint64_t reserve = compute_capability >= reserve_first ? reserve_bytes : 0;
      if (size > most_shared_bytes) continue;
      kernel.static_shared_bytes = static_cast<int>(size - std::min(size, reserve));
    }
    out.push_back(kernel);
  }
}

// A fat binary is a head (magic number, version, its own size, size of what follows) and entries,
// each with a head of its own: kind, version, size of the head, size of the content, and, at byte
// 28, the architecture.
constexpr std::uint32_t fat_magic = 0xBA55ED50;
constexpr std::uint16_t machine_code = 2;

}  // namespace

std::vector<CompiledKernel> compiled_kernels_in(Bytes elf) {
  std::vector<CompiledKernel> kernels;
  const ElfFile file(elf);
  Elf_Scn* const fat = file.find(".nv_fatbin");
  if (fat == nullptr) return kernels;
  const Bytes all = ElfFile::content(fat);
  for (std::uint64_t at = 0; at < all.size();) {
    const auto magic = value_at<std::uint32_t>(all, at);
    const auto head_size = value_at<std::uint16_t>(all, at + 6);
    const auto size = value_at<std::uint64_t>(all, at + 8);
    if (!magic || !head_size || !size) break;
    if (*magic != fat_magic) {  // padding between the fat binaries of two sources
      at += 8;
      continue;
    }
    const Bytes entries = part_of(all, at + *head_size, *size);
    for (std::uint64_t entry = 0; entry < entries.size();) {
      const auto kind = value_at<std::uint16_t>(entries, entry);
      const auto entry_head = value_at<std::uint32_t>(entries, entry + 4);
      const auto content = value_at<std::uint64_t>(entries, entry + 8);
      const auto architecture = value_at<std::uint32_t>(entries, entry + 28);
      if (!kind || !entry_head || !content || !architecture || *entry_head == 0) break;
      if (*kind == machine_code) {
        read_cubin(part_of(entries, entry + *entry_head, *content), static_cast<int>(*architecture),
                   kernels);
      }
      if (*content > entries.size()) break;
      entry += *entry_head + *content;
    }
    if (entries.empty()) break;
    at += *head_size + *size;
  }
  return kernels;
}

std::vector<CompiledKernel> compiled_kernels_in(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  std::string text(stream ? static_cast<std::size_t>(stream.tellg()) : 0, '\0');
  stream.seekg(0);
  if (!stream.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    throw MachineError(fmt::format("{}: cannot be read", file.string()));
  }
  return compiled_kernels_in(std::as_bytes(std::span(text)));
}

std::vector<CompiledKernel> compiled_kernels() {
  return compiled_kernels_in(std::filesystem::path("/proc/self/exe"));
}

}  // namespace attest
