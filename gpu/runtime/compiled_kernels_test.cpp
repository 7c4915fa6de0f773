#include "gpu/model/compiled_kernels.hpp"

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/runtime/cuda_error.hpp"
#include "gpu/runtime/test_device.hpp"
#include "gpu/runtime/test_kernels.hpp"

// This program has the machine code of the runtime's kernels; no GPU is needed to read it.
namespace attest {
namespace {

const std::string& own_bytes() {
  static const std::string bytes = [] {
    std::ifstream stream("/proc/self/exe", std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(stream), {}};
  }();
  return bytes;
}

TEST(CompiledKernels, EveryKernelOfThisProgramHasRegistersAndAName) {
  const std::vector<CompiledKernel> kernels = compiled_kernels();
  ASSERT_FALSE(kernels.empty());
  for (const CompiledKernel& kernel : kernels) {
    EXPECT_EQ(kernel.compute_capability, 90);
    EXPECT_GT(kernel.registers, 0) << kernel.name;
    EXPECT_LE(kernel.registers, 255) << kernel.name;
    EXPECT_GE(kernel.stack_bytes, 0);
    EXPECT_EQ(kernel.name.find("::"), std::string::npos) << kernel.name;
  }
}

const CompiledKernel& kernel_named(std::string_view name) {
  static const std::vector<CompiledKernel> kernels = compiled_kernels();
  const auto found = std::ranges::find(kernels, name, &CompiledKernel::name);
  if (found == kernels.end()) throw std::runtime_error("no such kernel");
  return *found;
}

TEST(CompiledKernels, StaticSharedMemoryIsCountedWithoutTheDriversReserve) {
  EXPECT_EQ(kernel_named("with_static_shared_memory").static_shared_bytes, 640);
  EXPECT_EQ(kernel_named("with_stack<200>").static_shared_bytes, 0);
}

TEST(CompiledKernels, AnArrayThatRegistersCannotHoldIsOnTheStack) {
  EXPECT_GE(kernel_named("with_stack<200>").stack_bytes, 200 * 4);
  EXPECT_EQ(kernel_named("with_static_shared_memory").stack_bytes, 0);
}

class GpuCompiledKernels : public OnGpu {};

TEST_F(GpuCompiledKernels, TheDriverSaysTheSame) {
  for (const auto& [name, address] :
       {std::pair("with_static_shared_memory", with_static_shared_memory_address()),
        std::pair("with_stack<200>", with_stack_address())}) {
    cudaFuncAttributes attributes{};
    ATTEST_CUDA_CHECK(cudaFuncGetAttributes(&attributes, address));
    EXPECT_EQ(attributes.numRegs, kernel_named(name).registers) << name;
    EXPECT_EQ(static_cast<int>(attributes.sharedSizeBytes), kernel_named(name).static_shared_bytes);
  }
}

RC_GTEST_PROP(CompiledKernels, DamagedCodeIsLeftOut, ()) {
  std::string bytes = own_bytes();
  // The head of the file and the places that it points to are where damage hurts.
  const std::size_t fat = bytes.find(std::string("\x50\xed\x55\xba", 4));
  RC_ASSERT(fat != std::string::npos);
  const int flips = *rc::gen::inRange(1, 20);
  for (int i = 0; i < flips; ++i) {
    const auto within = *rc::gen::inRange<std::size_t>(0, 4096);
    const std::size_t at = *rc::gen::element<std::size_t>(0, fat, bytes.size() - 4096) + within;
    bytes[at] = *rc::gen::arbitrary<char>();
  }
  bytes.resize(*rc::gen::inRange<std::size_t>(bytes.size() / 2, bytes.size() + 1));
  (void)compiled_kernels_in(std::as_bytes(std::span(bytes)));
}

}  // namespace
}  // namespace attest
