#include "gpu/peers/embedded_scripts.hpp"

// As core/inputs/embedded_data.cpp.
#define ATTEST_EMBED(name, file)             \
  asm(".pushsection .rodata\n"               \
      ".globl attest_" #name                 \
      "_begin\n"                             \
      ".hidden attest_" #name                \
      "_begin\n"                             \
      ".globl attest_" #name                 \
      "_end\n"                               \
      ".hidden attest_" #name                \
      "_end\n"                               \
      "attest_" #name                        \
      "_begin:\n"                            \
      ".incbin \"" file                      \
      "\"\n"                                 \
      "attest_" #name                        \
      "_end:\n"                              \
      ".byte 0\n"                            \
      ".popsection\n");                      \
  extern "C" {                               \
  extern const char attest_##name##_begin[]; \
  extern const char attest_##name##_end[];   \
  }

ATTEST_EMBED(torch_worker, ATTEST_TORCH_WORKER)
ATTEST_EMBED(triton_flash, ATTEST_TRITON_FLASH)
ATTEST_EMBED(torch_decode, ATTEST_TORCH_DECODE)
ATTEST_EMBED(torch_backward, ATTEST_TORCH_BACKWARD)

namespace attest {

std::string_view torch_worker_script() {
  return {attest_torch_worker_begin, attest_torch_worker_end};
}
std::string_view triton_flash_script() {
  return {attest_triton_flash_begin, attest_triton_flash_end};
}
std::string_view torch_decode_script() {
  return {attest_torch_decode_begin, attest_torch_decode_end};
}
std::string_view torch_backward_script() {
  return {attest_torch_backward_begin, attest_torch_backward_end};
}

}  // namespace attest
