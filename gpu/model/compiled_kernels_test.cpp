#include "gpu/model/compiled_kernels.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

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
