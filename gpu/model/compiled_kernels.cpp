#include "gpu/model/compiled_kernels.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
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

std::string_view text_at(Bytes bytes, std::uint64_t at) {
  if (at >= bytes.size()) return {};
  const auto* const begin = reinterpret_cast<const char*>(bytes.data()) + at;
  const std::string_view rest(begin, bytes.size() - static_cast<std::size_t>(at));
  return rest.substr(0, rest.find('\0'));
}

struct Section {
  std::string_view name;
  Elf64_Shdr header;
  Bytes content;
};

std::vector<Section> sections_of(Bytes elf) {
  const auto head = value_at<Elf64_Ehdr>(elf, 0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
      head->e_ident[EI_CLASS] != ELFCLASS64) {
    return {};
  }
  const auto header_of = [&](std::uint64_t index) {
    return value_at<Elf64_Shdr>(elf, head->e_shoff + index * sizeof(Elf64_Shdr));
  };
  const auto first = header_of(0);
  if (!first) return {};
  // Files with very many sections keep these two numbers in the first, otherwise empty, header.
  const std::uint64_t count = head->e_shnum != 0 ? head->e_shnum : first->sh_size;
  const std::uint64_t names = head->e_shstrndx != SHN_XINDEX ? head->e_shstrndx : first->sh_link;
  const auto names_header = header_of(names);
  if (!names_header) return {};
  const Bytes text = part_of(elf, names_header->sh_offset, names_header->sh_size);
  std::vector<Section> sections;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto header = header_of(i);
    if (!header) break;
    const bool has_content = header->sh_type != SHT_NOBITS;
    sections.push_back({text_at(text, header->sh_name), *header,
                        has_content ? part_of(elf, header->sh_offset, header->sh_size) : Bytes{}});
  }
  return sections;
}

const Section* find(const std::vector<Section>& sections, std::string_view name) {
  const auto found = std::ranges::find(sections, name, &Section::name);
  return found == sections.end() ? nullptr : &*found;
}

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

void read_cubin(Bytes cubin, int compute_capability, std::vector<CompiledKernel>& out) {
  const std::vector<Section> sections = sections_of(cubin);
  const Section* const info = find(sections, ".nv.info");
  const Section* const symbols = find(sections, ".symtab");
  const Section* const names = find(sections, ".strtab");
  if (info == nullptr || symbols == nullptr || names == nullptr) return;

  std::map<std::uint32_t, CompiledKernel> kernels;  // by symbol
  std::map<std::uint32_t, int> frames;
  for (std::uint64_t at = 0; at < info->content.size();) {
    const auto format = value_at<std::uint8_t>(info->content, at);
    const auto code = value_at<std::uint8_t>(info->content, at + 1);
    const auto size = value_at<std::uint16_t>(info->content, at + 2);
    if (!format || !code || !size) break;
    at += 4;
    if (*format != with_bytes) continue;
    const auto symbol = value_at<std::uint32_t>(info->content, at);
    const auto value = value_at<std::int32_t>(info->content, at + 4);
    at += *size;
    if (!symbol || !value || *size != 8) continue;
    if (*code == register_count) kernels[*symbol].registers = *value;
    if (*code == frame_size) frames[*symbol] = *value;
  }
  for (auto& [index, kernel] : kernels) {
    const auto symbol = value_at<Elf64_Sym>(symbols->content, index * sizeof(Elf64_Sym));
    if (!symbol) continue;
    const std::string_view mangled = text_at(names->content, symbol->st_name);
    if (mangled.empty()) continue;
    kernel.name = readable(mangled);
    kernel.compute_capability = compute_capability;
    kernel.stack_bytes = frames[index];
    if (const Section* const shared = find(sections, fmt::format(".nv.shared.{}", mangled))) {
      const int reserve = compute_capability >= reserve_first ? reserve_bytes : 0;
      kernel.static_shared_bytes = std::max(0, static_cast<int>(shared->header.sh_size) - reserve);
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
  const std::vector<Section> sections = sections_of(elf);
  const Section* const fat = find(sections, ".nv_fatbin");
  if (fat == nullptr) return kernels;
  const Bytes all = fat->content;
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
