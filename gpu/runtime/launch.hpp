#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "core/run/device.hpp"

namespace attest {

/// Kernels compiled by nvcc are registered for the GPU; gpu/simt/launch.hpp says the same for the
/// SIMT executor.
inline constexpr Executor this_executor = Executor::gpu;

/// Checks the sizes against the device, asks for more than 48 KiB of shared memory where that is
/// needed, launches in the device's stream and checks for a failed launch. `arguments` are
/// addresses of the kernel's parameters. Throws MachineError.
/// `is_dependent`: it may begin while the launch before it in the stream still runs.
void launch_checked(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
                    Device& device, void** arguments, bool is_dependent = false);

/// Number of blocks of `kernel` that run on the whole of `device` at once, at least 1. Throws
/// MachineError.
[[nodiscard]] std::int64_t resident_blocks_of(const void* kernel, dim3 block,
                                              std::size_t shared_bytes, Device& device);

// A kernel's types are the same on the GPU and on the executor, so without a name of their own
// these templates would be one symbol, and the linker would keep either.
inline namespace on_gpu {

/// Launches kernel(arguments...) on `device`, which must be a CudaDevice, and returns without
/// waiting. shared_bytes: dynamic shared memory of a block, what dynamic_shared() points to. Throws
/// MachineError with one sentence when the grid, the block or the shared memory is beyond the
/// device.
template <bool is_dependent = false, typename... Parameters, typename... Args>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            Device& device, Args&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Args), "one argument for each parameter");
  std::tuple<Parameters...> values{static_cast<Args&&>(arguments)...};
  std::apply(
      [&](auto&... value) {
        std::array<void*, sizeof...(Parameters) + 1> addresses{&value..., nullptr};
        launch_checked(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, device,
                       addresses.data(), is_dependent);
      },
      values);
}

/// Launches a kernel that may begin before the launch before it has ended: dependent_launch.cuh.
template <typename... Parameters, typename... Args>
void launch_dependent(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                      std::size_t shared_bytes, Device& device, Args&&... arguments) {
  launch<true>(kernel, grid, block, shared_bytes, device, static_cast<Args&&>(arguments)...);
}

/// resident_blocks_of() a kernel that is named.
template <typename... Parameters>
std::int64_t resident_blocks(void (*kernel)(Parameters...), dim3 block, std::size_t shared_bytes,
                             Device& device) {
  return resident_blocks_of(reinterpret_cast<const void*>(kernel), block, shared_bytes, device);
}

#ifdef __CUDACC__
/// The block's dynamic shared memory, aligned to 16 bytes. Values are undefined when the block
/// starts.
template <typename T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char attest_dynamic_shared_bytes[];
  return reinterpret_cast<T*>(attest_dynamic_shared_bytes);
}
#endif

}  // namespace on_gpu
}  // namespace attest
