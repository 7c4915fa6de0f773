// One program a target: CMake sets ATTEST_FUZZ_TARGET to its function.
#include "fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attest::ATTEST_FUZZ_TARGET({data, size});
  return 0;
}
