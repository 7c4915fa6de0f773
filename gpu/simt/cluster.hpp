#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include "gpu/simt/launch.hpp"

// Thread block clusters: blocks that run together, each with its shared memory, which the others
// may read and write between two barriers of the cluster.
namespace attest {
namespace simt {

/// Runs the grid in clusters of `cluster` blocks that follow each other in x. What run_grid()
/// throws, and MachineError where the cluster has more than 8 blocks or grid.x is no multiple.
void run_clusters(const KernelCall& call, unsigned cluster, dim3 grid, dim3 block,
                  std::size_t shared_bytes, Device& device);

/// The place of `shared`, which lies in this block's shared memory, in that of block `rank` of the
/// cluster.
[[nodiscard]] void* in_block_of_cluster(void* shared, int rank) noexcept;
/// barrier.cluster, of all threads of all blocks: arrive, and later wait for the others.
void arrive_cluster();
void wait_cluster(const char* file, int line);

}  // namespace simt

inline namespace on_simt {

/// Why a device has no clusters (gpu/runtime/cluster_launch.hpp); the executor has them.
inline std::string why_no_clusters() {
  return {};
}

template <typename... P, typename... A>
void launch_clusters(void (*kernel)(P...), unsigned cluster, dim3 grid, dim3 block,
                     std::size_t shared_bytes, Device& device, A... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for every parameter of the kernel");
  using Bound = std::pair<void (*)(P...), std::tuple<P...>>;
  const Bound bound{kernel, std::tuple<P...>(static_cast<P>(arguments)...)};
  const auto run = [](const void* opaque) __attribute__((no_sanitize("thread"))) {
    const Bound& call = *static_cast<const Bound*>(opaque);
    std::apply(call.first, call.second);
  };
  simt::run_clusters({run, &bound, reinterpret_cast<const void*>(kernel)}, cluster, grid, block,
                     shared_bytes, device);
}

}  // namespace on_simt
}  // namespace attest
