#pragma once

#include <string>

#include "gpu/runtime/launch.hpp"

namespace attest {

/// launch_checked() in clusters of `cluster` blocks that follow each other in x.
void launch_clusters_checked(const void* kernel, unsigned cluster, dim3 grid, dim3 block,
                             std::size_t shared_bytes, Device& device, void** arguments);

/// One line why blocks cannot be launched in clusters; empty where they can: from compute
/// capability 9.0 on.
[[nodiscard]] std::string why_no_clusters();

inline namespace on_gpu {

/// launch() in clusters of `cluster` blocks, 1 to 8, that follow each other in x; grid.x is a
/// multiple of it.
template <typename... Parameters, typename... Args>
void launch_clusters(void (*kernel)(Parameters...), unsigned cluster, dim3 grid, dim3 block,
                     std::size_t shared_bytes, Device& device, Args&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Args), "one argument for each parameter");
  std::tuple<Parameters...> values{static_cast<Args&&>(arguments)...};
  std::apply(
      [&](auto&... value) {
        std::array<void*, sizeof...(Parameters) + 1> addresses{&value..., nullptr};
        launch_clusters_checked(reinterpret_cast<const void*>(kernel), cluster, grid, block,
                                shared_bytes, device, addresses.data());
      },
      values);
}

}  // namespace on_gpu
}  // namespace attest
