#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/runtime/cluster_launch.hpp"
#include "gpu/runtime/cuda_device.hpp"

namespace attest {
namespace {

void require_within(std::string_view what, std::int64_t got, std::int64_t low, std::int64_t high,
                    const DeviceInfo& device) {
  if (got < low || got > high) {
    throw MachineError(fmt::format("kernel launch: {} is {}; {} allows {} to {}", what, got,
                                   device.name, low, high));
  }
}

/// Lets the kernel use all the dynamic shared memory there is. Not only what one launch needs: the
/// setting belongs to the process, and another thread's launch may need more.
void allow_all_shared_memory(const void* kernel, const DeviceInfo& device) {
  cudaFuncAttributes attributes{};
  ATTEST_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  const std::int64_t left =
      device.shared_per_block_optin_bytes - static_cast<std::int64_t>(attributes.sharedSizeBytes);
  if (attributes.maxDynamicSharedSizeBytes == left) return;
  ATTEST_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(left)));
}

/// A launch whose sizes are checked; `attributes`: what is special about it.
void launch_with(std::span<cudaLaunchAttribute> attributes, const void* kernel, dim3 grid,
                 dim3 block, std::size_t shared_bytes, Device& device, void** arguments) {
  const CudaDevice& gpu = dynamic_cast<CudaDevice&>(device);
  const DeviceInfo& info = gpu.info();
  require_within("grid.x", grid.x, 1, info.max_grid_x, info);
  require_within("grid.y", grid.y, 1, info.max_grid_y, info);
  require_within("grid.z", grid.z, 1, info.max_grid_z, info);
  const std::int64_t threads = std::int64_t{block.x} * block.y * block.z;
  require_within("threads of a block", threads, 1, info.max_threads_per_block, info);
  require_within("dynamic shared memory of a block in bytes",
                 static_cast<std::int64_t>(shared_bytes), 0, info.shared_per_block_optin_bytes,
                 info);
  if (static_cast<std::int64_t>(shared_bytes) > info.shared_per_block_bytes) {
    allow_all_shared_memory(kernel, info);
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = gpu.stream().get();
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  ATTEST_CUDA_CHECK(cudaLaunchKernelExC(&config, kernel, arguments));
  // A launch can also leave its error behind without returning it.
  ATTEST_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void launch_checked(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
                    Device& device, void** arguments, bool is_dependent) {
  cudaLaunchAttribute overlaps{};
  overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlaps.val.programmaticStreamSerializationAllowed = 1;
  launch_with(std::span(&overlaps, is_dependent ? 1 : 0), kernel, grid, block, shared_bytes, device,
              arguments);
}

void launch_clusters_checked(const void* kernel, unsigned cluster, dim3 grid, dim3 block,
                             std::size_t shared_bytes, Device& device, void** arguments) {
  constexpr unsigned most_blocks = 8;  // of a cluster, on every GPU that has clusters
  const DeviceInfo& info = dynamic_cast<CudaDevice&>(device).info();
  require_within("blocks of a cluster", cluster, 1, most_blocks, info);
  if (grid.x % cluster != 0) {
    throw MachineError(fmt::format(
        "kernel launch: grid.x is {}; clusters of {} blocks allow multiples", grid.x, cluster));
  }
  cudaLaunchAttribute size{};
  size.id = cudaLaunchAttributeClusterDimension;
  size.val.clusterDim = {cluster, 1, 1};
  launch_with(std::span(&size, 1), kernel, grid, block, shared_bytes, device, arguments);
}

std::string why_no_clusters() {
  static const std::string reason = [] {
    std::string no_gpu = why_no_gpu();
    if (!no_gpu.empty()) return no_gpu;
    const DeviceInfo info = device_info(0);
    if (info.compute_major >= 9) return std::string{};
    return fmt::format("clusters need sm_90, and {} is sm_{}{}", info.name, info.compute_major,
                       info.compute_minor);
  }();
  return reason;
}

std::int64_t resident_blocks_of(const void* kernel, dim3 block, std::size_t shared_bytes,
                                Device& device) {
  const DeviceInfo& info = dynamic_cast<CudaDevice&>(device).info();
  if (static_cast<std::int64_t>(shared_bytes) > info.shared_per_block_bytes) {
    allow_all_shared_memory(kernel, info);
  }
  int blocks = 0;
  ATTEST_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, kernel, static_cast<int>(block.x * block.y * block.z), shared_bytes));
  // 0: the launch itself will say what it lacks.
  return std::max<std::int64_t>(1, std::int64_t{blocks} * info.multiprocessors);
}

}  // namespace attest
