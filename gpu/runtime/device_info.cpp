#include "gpu/runtime/device_info.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>

#include "gpu/runtime/cuda_error.hpp"

namespace attest {
namespace {

#ifdef ATTEST_ALL_GPUS
constexpr bool built_for_all = true;
#else
constexpr bool built_for_all = false;
#endif

/// CUDA counts versions as 1000 * major + 10 * minor.
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  ATTEST_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, ordinal));
  return value;
}

/// 0 when there is no driver.
int driver_version() {
  int version = 0;
  ATTEST_CUDA_CHECK(cudaDriverGetVersion(&version));
  return version;
}

int runtime_version() {
  int version = 0;
  ATTEST_CUDA_CHECK(cudaRuntimeGetVersion(&version));
  return version;
}

/// 0 where the driver does not tell. A clock has two edges, and each carries a bit a wire.
double memory_bytes_per_s(int ordinal) {
  const double clock_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate, ordinal);
  return 2 * clock_hz * attribute(cudaDevAttrGlobalMemoryBusWidth, ordinal) / 8;
}

std::string pci_bus_id(int ordinal) {
  std::array<char, 32> id{};
  ATTEST_CUDA_CHECK(cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), ordinal));
  return id.data();
}

}  // namespace

DeviceInfo device_info(int ordinal) {
  cudaDeviceProp properties{};
  ATTEST_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal));
  return {
      .name = properties.name,
      .compute_major = properties.major,
      .compute_minor = properties.minor,
      .multiprocessors = properties.multiProcessorCount,
      .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
      .memory_bytes_per_s = memory_bytes_per_s(ordinal),
      .l2_bytes = properties.l2CacheSize,
      .shared_per_block_bytes = static_cast<std::int64_t>(properties.sharedMemPerBlock),
      .shared_per_block_optin_bytes = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin),
      .shared_per_multiprocessor_bytes =
          static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor),
      .registers_per_multiprocessor = properties.regsPerMultiprocessor,
      .max_threads_per_block = properties.maxThreadsPerBlock,
      .max_grid_x = properties.maxGridSize[0],
      .max_grid_y = properties.maxGridSize[1],
      .max_grid_z = properties.maxGridSize[2],
      .pci_bus_id = pci_bus_id(ordinal),
      .driver = version_text(driver_version()),
      .runtime = version_text(runtime_version())};
}

std::string to_string(const DeviceInfo& info) {
  const std::string bandwidth = info.memory_bytes_per_s > 0
                                    ? fmt::format("{:.1f} TB/s, ", info.memory_bytes_per_s / 1e12)
                                    : "";
  return fmt::format("{}, sm_{}{}, {} SMs, {:.1f} GiB, {}PCI {}, driver CUDA {}, runtime CUDA {}",
                     info.name, info.compute_major, info.compute_minor, info.multiprocessors,
                     static_cast<double>(info.memory_bytes) / 0x1p30, bandwidth, info.pci_bus_id,
                     info.driver, info.runtime);
}

std::string why_not_on(int major, int minor, bool all_gpus) {
  if (major < 8) {
    return fmt::format("GPU 0 is sm_{}{}; kernels are for sm_80 and later", major, minor);
  }
  if (all_gpus || (major == 9 && minor == 0)) return {};
  return fmt::format(
      "GPU 0 is sm_{}{}, but kernels were built for sm_90 only; configure with "
      "-DATTEST_ALL_GPUS=on",
      major, minor);
}

std::string why_no_gpu() {
  try {
    const int driver = driver_version();
    const int runtime = runtime_version();
    if (driver == 0) return "no NVIDIA driver on this machine (libcuda.so.1 was not found)";
    // Within one major version an older driver runs a newer runtime [CUDA compatibility guide,
    // minor version].
    if (driver / 1000 < runtime / 1000) {
      return fmt::format("the NVIDIA driver supports CUDA {}; this program needs {}.0 or later",
                         version_text(driver), runtime / 1000);
    }
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0)) {
      cudaGetLastError();
      return "the NVIDIA driver is there, but it sees no GPU (CUDA_VISIBLE_DEVICES may hide it)";
    }
    ATTEST_CUDA_CHECK(code);
    return why_not_on(attribute(cudaDevAttrComputeCapabilityMajor, 0),
                      attribute(cudaDevAttrComputeCapabilityMinor, 0), built_for_all);
  } catch (const CudaError& error) {
    return error.what();
  }
}

}  // namespace attest
