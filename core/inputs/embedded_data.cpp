#include "core/inputs/embedded_data.hpp"

#include <array>

// The assembler copies a file into the object; no tool and no generated source is needed. The
// paths come from core/CMakeLists.txt, which also rebuilds this file when the data change.
#define ATTEST_CARRY(symbol, path)      \
  asm(".pushsection .rodata\n"          \
      ".balign 64\n"                    \
      ".globl " symbol                  \
      "_begin\n"                        \
      ".hidden " symbol                 \
      "_begin\n"                        \
      ".globl " symbol                  \
      "_end\n"                          \
      ".hidden " symbol "_end\n" symbol \
      "_begin:\n"                       \
      ".incbin \"" path "\"\n" symbol   \
      "_end:\n"                         \
      ".byte 0\n"                       \
      ".popsection\n")

ATTEST_CARRY("attest_real_qkv", ATTEST_REAL_QKV);
ATTEST_CARRY("attest_outlier_qkv", ATTEST_OUTLIER_QKV);
ATTEST_CARRY("attest_audio_qkv", ATTEST_AUDIO_QKV);

extern "C" {
extern const std::byte attest_real_qkv_begin[];
extern const std::byte attest_real_qkv_end[];
extern const std::byte attest_outlier_qkv_begin[];
extern const std::byte attest_outlier_qkv_end[];
extern const std::byte attest_audio_qkv_begin[];
extern const std::byte attest_audio_qkv_end[];
}

namespace attest {

std::span<const EmbeddedCapture> embedded_captures() {
  static const std::array captures{
      EmbeddedCapture{.family = "real",
                      .summary = "windows of real layers of MiniLM and SmolLM2 on real text: "
                                 "attention sinks, near-ties, logits to 75",
                      .file = "real_qkv.safetensors",
                      .bytes = {attest_real_qkv_begin, attest_real_qkv_end}},
      EmbeddedCapture{.family = "real_outliers",
                      .summary = "windows of real layers of Qwen2.5 on real text: channels of K "
                                 "that biases raise to 215, logits from -528 to 1,459, groups of 7",
                      .file = "outlier_qkv.safetensors",
                      .bytes = {attest_outlier_qkv_begin, attest_outlier_qkv_end}},
      EmbeddedCapture{.family = "real_audio",
                      .summary = "windows of real layers of Whisper on speech: 1,500 frames of "
                                 "sound, and cross attention, whose queries are unlike its keys",
                      .file = "audio_qkv.safetensors",
                      .bytes = {attest_audio_qkv_begin, attest_audio_qkv_end}}};
  return captures;
}

}  // namespace attest
