#include "gpu/model/occupancy.hpp"

#include <cuda_occupancy.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

// gpu/model/occupancy against the calculator that comes with the toolkit; no GPU is needed.
namespace attest {
namespace {

cudaOccDeviceProp properties_of(const GpuModel& gpu) {
  cudaOccDeviceProp properties;
  properties.computeMajor = gpu.compute_capability / 10;
  properties.computeMinor = gpu.compute_capability % 10;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsPerMultiprocessor = static_cast<int>(gpu.warps_per_sm) * 32;
  properties.regsPerBlock = properties.regsPerMultiprocessor =
      static_cast<int>(gpu.registers_per_sm);
  properties.warpSize = 32;
  properties.sharedMemPerBlock = 48 * 1024;
  properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(gpu.shared_per_sm_bytes);
  properties.numSms = static_cast<int>(gpu.sms);
  properties.sharedMemPerBlockOptin = static_cast<std::size_t>(gpu.shared_per_block_bytes);
  properties.reservedSharedMemPerBlock = static_cast<std::size_t>(gpu.shared_reserved_bytes);
  return properties;
}

RC_GTEST_PROP(Occupancy, AgreesWithTheCalculatorOfTheToolkit, ()) {
  const GpuModel gpu =
      *rc::gen::elementOf(std::vector<GpuModel>(all_gpu_models().begin(), all_gpu_models().end()));
  const std::int64_t threads = *rc::gen::inRange<std::int64_t>(1, 1025);
  const std::int64_t registers = *rc::gen::inRange<std::int64_t>(1, 256);
  const std::int64_t shared = *rc::gen::oneOf(
      rc::gen::inRange<std::int64_t>(0, gpu.shared_per_block_bytes + 1),
      rc::gen::map(rc::gen::inRange<std::int64_t>(0, 200), [](std::int64_t i) { return i * 128; }));

  const cudaOccDeviceProp properties = properties_of(gpu);
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = 1024;
  attributes.numRegs = static_cast<int>(registers);
  attributes.sharedSizeBytes = 0;
  attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = static_cast<std::size_t>(shared);
  attributes.numBlockBarriers = 1;
  const cudaOccDeviceState state;
  cudaOccResult result{};
  RC_ASSERT(cudaOccMaxActiveBlocksPerMultiprocessor(
                &result, &properties, &attributes, &state, static_cast<int>(threads),
                static_cast<std::size_t>(shared)) == CUDA_OCC_SUCCESS);
  const Occupancy ours = occupancy_of(
      gpu, {.threads = threads, .registers_per_thread = registers, .shared_bytes = shared},
      1 << 20);
  RC_ASSERT(ours.blocks == result.activeBlocksPerMultiprocessor);
}

}  // namespace
}  // namespace attest
