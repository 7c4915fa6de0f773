#include "core/embedded_tuning_table.hpp"

// See core/embedded_data.cpp. A file of its own: a program that needs the table need not carry the
// activations.
asm(".pushsection .rodata\n"
    ".globl attest_tuned_plans_begin\n"
    ".hidden attest_tuned_plans_begin\n"
    ".globl attest_tuned_plans_end\n"
    ".hidden attest_tuned_plans_end\n"
    "attest_tuned_plans_begin:\n"
    ".incbin \"" ATTEST_TUNED_PLANS
    "\"\n"
    "attest_tuned_plans_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char attest_tuned_plans_begin[];
extern const char attest_tuned_plans_end[];
}

namespace attest {

std::string_view embedded_tuning_text() {
  return {attest_tuned_plans_begin, attest_tuned_plans_end};
}

}  // namespace attest
