#include <fmt/format.h>

#include <string_view>

#include "core/base/error.hpp"
#include "core/run/tuning_table.hpp"

// See core/inputs/embedded_data.cpp. A file of its own: a program that needs the table need not
// carry the activations.
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

const TuningTable& embedded_tuning_table() {
  static const TuningTable table = [] {
    try {
      return tuning_table_from_json({attest_tuned_plans_begin, attest_tuned_plans_end},
                                    "the program's table of tuned Plans");
    } catch (const InvalidInput& error) {
      fmt::print(stderr, "attest: {}; the first Plan of each kernel is taken\n", error.what());
      return TuningTable{};
    }
  }();
  return table;
}

}  // namespace attest
