#include "core/inputs/embedded_data.hpp"

// The assembler copies the file into the object; no tool and no generated source is needed.
// ATTEST_REAL_QKV comes from core/CMakeLists.txt, which also rebuilds this file when the data
// change.
asm(".pushsection .rodata\n"
    ".balign 64\n"
    ".globl attest_real_qkv_begin\n"
    ".hidden attest_real_qkv_begin\n"
    ".globl attest_real_qkv_end\n"
    ".hidden attest_real_qkv_end\n"
    "attest_real_qkv_begin:\n"
    ".incbin \"" ATTEST_REAL_QKV
    "\"\n"
    "attest_real_qkv_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const std::byte attest_real_qkv_begin[];
extern const std::byte attest_real_qkv_end[];
}

namespace attest {

std::span<const std::byte> embedded_real_qkv() {
  return {attest_real_qkv_begin, attest_real_qkv_end};
}

}  // namespace attest
