#include "gpu/model/compiled_kernels.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct MadeUpSection {
  std::string name, content{};
  std::uint32_t type = SHT_PROGBITS;
  std::uint32_t link = 0;
  std::uint64_t size_without_content = 0;  ///< as the header says it, with SHT_NOBITS
};

/// An ELF file of 64 bits with these sections as numbers 1, 2, ...
std::string elf_of(std::vector<MadeUpSection> sections) {
  std::string names(1, '\0');
  sections.push_back({.name = ".shstrtab", .content = "", .type = SHT_STRTAB});
  for (const MadeUpSection& section : sections) names += section.name + '\0';
  sections.back().content = names;
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_version = EV_CURRENT;
  head.e_ehsize = sizeof(Elf64_Ehdr);
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<std::uint16_t>(sections.size() + 1);
  head.e_shstrndx = static_cast<std::uint16_t>(sections.size());
  std::string contents, headers;
  append(headers, Elf64_Shdr{});
  std::size_t name = 1;
  for (const MadeUpSection& section : sections) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<std::uint32_t>(name);
    header.sh_type = section.type;
    header.sh_link = section.link;
    header.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
    header.sh_size =
        section.type == SHT_NOBITS ? section.size_without_content : section.content.size();
    header.sh_entsize = section.type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0;
    append(headers, header);
    contents += section.content;
    contents.resize((contents.size() + 7) / 8 * 8);
    name += section.name.size() + 1;
  }
  head.e_shoff = sizeof(Elf64_Ehdr) + contents.size();
  std::string file;
  append(file, head);
  return file + contents + headers;
}

/// Machine code of a kernel `kernel` with 42 registers, 16 bytes of stack and so much static shared
/// memory.
std::string cubin_with(std::uint64_t shared_bytes) {
  std::string info;
  for (const auto& [code, value] : {std::pair{0x2f, 42}, std::pair{0x11, 16}}) {
    append(info, static_cast<std::uint16_t>(4 | code << 8));
    append(info, std::uint16_t{8});
    append(info, std::uint32_t{1});  // the symbol
    append(info, std::int32_t{value});
  }
  std::string symbols;
  append(symbols, Elf64_Sym{});
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  append(symbols, symbol);
  return elf_of(
      {{.name = ".nv.info", .content = info},
       {.name = ".symtab", .content = symbols, .type = SHT_SYMTAB, .link = 3},
       {.name = ".strtab", .content = std::string("\0kernel\0", 8), .type = SHT_STRTAB},
       {.name = ".nv.shared.kernel", .type = SHT_NOBITS, .size_without_content = shared_bytes}});
}

/// A program that holds the machine code for an architecture.
std::string program_with(const std::string& cubin, std::uint32_t architecture) {
  std::string entry;
  append(entry, std::uint16_t{2});  // machine code
  append(entry, std::uint16_t{0});
  append(entry, std::uint32_t{32});  // size of this head
  append(entry, std::uint64_t{cubin.size()});
  append(entry, std::array<std::uint32_t, 3>{});
  append(entry, architecture);
  std::string fat;
  append(fat, std::uint32_t{0xBA55ED50});
  append(fat, std::uint16_t{1});
  append(fat, std::uint16_t{16});
  append(fat, std::uint64_t{entry.size() + cubin.size()});
  return elf_of({{.name = ".text", .content = "text"},
                 {.name = ".nv_fatbin", .content = std::string(8, '\0') + fat + entry + cubin}});
}

std::vector<CompiledKernel> kernels_in(const std::string& program) {
  return compiled_kernels_in(std::as_bytes(std::span(program)));
}

TEST(CompiledKernels, AreReadFromTheMachineCodeInsideAProgram) {
  const CompiledKernel kernel{.name = "kernel",
                              .compute_capability = 80,
                              .registers = 42,
                              .stack_bytes = 16,
                              .static_shared_bytes = 4096};
  EXPECT_EQ(kernels_in(program_with(cubin_with(4096), 80)), std::vector{kernel});
}

TEST(CompiledKernels, TheDriversReserveFromSm90OnIsNoneOfTheKernels) {
  const auto with_reserve = kernels_in(program_with(cubin_with(4096 + 1024), 90));
  ASSERT_EQ(with_reserve.size(), 1U);
  EXPECT_EQ(with_reserve[0].static_shared_bytes, 4096);
  EXPECT_EQ(kernels_in(program_with(cubin_with(0), 90)).at(0).static_shared_bytes, 0);
}

TEST(CompiledKernels, OneWithMoreSharedMemoryThanAnyGpuHasIsDamaged) {
  for (const std::uint64_t size : {0x8000'0000ULL, 0x8000'03ffULL, ~0ULL}) {
    EXPECT_TRUE(kernels_in(program_with(cubin_with(size), 90)).empty()) << size;
  }
}

RC_GTEST_PROP(CompiledKernels, OfAProgramThatWasCutOrHasAWrongByteAreReadWithoutHarm, ()) {
  static const std::string whole = program_with(cubin_with(4096), 90);
  std::string cut = whole.substr(0, *rc::gen::inRange<std::size_t>(0, whole.size()));
  (void)kernels_in(cut);
  std::string wrong = whole;
  wrong[*rc::gen::inRange<std::size_t>(0, whole.size())] = *rc::gen::arbitrary<char>();
  RC_ASSERT(kernels_in(wrong).size() <= 1U);
}

TEST(CompiledKernels, AProgramWithoutGpuCodeHasNone) {
  EXPECT_TRUE(compiled_kernels().empty());
}

TEST(CompiledKernels, AFileThatIsMissingIsSaidToBe) {
  EXPECT_THROW((void)compiled_kernels_in(std::filesystem::path("/nowhere/program")), MachineError);
}

RC_GTEST_PROP(CompiledKernels, BytesThatAreNoElfFileHoldNone, ()) {
  const auto bytes = *rc::gen::arbitrary<std::string>();
  RC_ASSERT(compiled_kernels_in(std::as_bytes(std::span(bytes))).empty());
  const std::string with_magic = std::string(
                                     "\x7f"
                                     "ELF\x02") +
                                 bytes;
  RC_ASSERT(compiled_kernels_in(std::as_bytes(std::span(with_magic))).empty());
}

}  // namespace
}  // namespace attest
