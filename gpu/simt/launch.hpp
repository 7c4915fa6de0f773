#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "core/run/device.hpp"
#include "gpu/simt/execution.hpp"

namespace attest {

inline constexpr Executor this_executor = Executor::simt;

namespace simt {

/// A kernel with its arguments bound: `run(arguments)` executes one thread.
struct KernelCall {
  void (*run)(const void* arguments);
  const void* arguments;
  const void* address;  ///< of the kernel: findings name it
};

/// Runs the whole grid and returns. Throws MachineError when sizes exceed what a GPU takes (grid
/// 2^31 - 1 x 65535 x 65535, 1,024 threads a block, 227 KiB of shared memory), std::logic_error
/// when `device` is not the executor's.
/// `is_dependent`: threads may run before the launch before has ended (dependent_launch.cuh); its
/// memory is theirs behind wait_for_predecessor().
void run_grid(const KernelCall& call, dim3 grid, dim3 block, std::size_t shared_bytes,
              Device& device, bool is_dependent);

/// Number of blocks of a kernel that run at once. Small, so that drawn problems have fewer tiles,
/// as many, and many more; on a device that traces launches for another one, what TraceOptions say.
[[nodiscard]] std::int64_t resident_blocks_of(const void* kernel, dim3 block,
                                              std::size_t shared_bytes, Device& device);

}  // namespace simt

// A kernel's types are the same on the GPU and on the executor, so without a name of their own
// these templates would be one symbol, and the linker would keep either.
inline namespace on_simt {

/// Runs `kernel` over the grid on the executor; arguments are converted to the kernel's parameter
/// types and copied for every thread. Returns when all blocks have run; what went wrong inside is
/// in device.take_findings().
template <bool is_dependent = false, typename... P, typename... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, Device& device,
            A... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for every parameter of the kernel");
  using Bound = std::pair<void (*)(P...), std::tuple<P...>>;
  const Bound bound{kernel, std::tuple<P...>(static_cast<P>(arguments)...)};
  // Not hooked: copying the arguments is no memory access of the kernel.
  const auto run = [](const void* opaque) __attribute__((no_sanitize("thread"))) {
    const Bound& call = *static_cast<const Bound*>(opaque);
    std::apply(call.first, call.second);
  };
  simt::run_grid({run, &bound, reinterpret_cast<const void*>(kernel)}, grid, block, shared_bytes,
                 device, is_dependent);
}

/// Launches a kernel that may begin before the launch before it has ended: dependent_launch.cuh.
template <typename... P, typename... A>
void launch_dependent(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes,
                      Device& device, A... arguments) {
  launch<true>(kernel, grid, block, shared_bytes, device, arguments...);
}

/// Number of blocks of `kernel` that a persistent launch starts.
template <typename... P>
std::int64_t resident_blocks(void (*kernel)(P...), dim3 block, std::size_t shared_bytes,
                             Device& device) {
  return simt::resident_blocks_of(reinterpret_cast<const void*>(kernel), block, shared_bytes,
                                  device);
}

/// The block's dynamic shared memory; 256-byte aligned and filled with NaN when the block starts.
template <typename T>
T* dynamic_shared() {
  return static_cast<T*>(simt::dynamic_shared_memory());
}

}  // namespace on_simt
}  // namespace attest
