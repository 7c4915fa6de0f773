#pragma once

#include "core/operations/forward_arguments.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

/// Launches with the grid, threads and shared memory of `needs`, which why_tiles_do_not_fit() has
/// accepted.
template <Executor home = this_executor>  // so that both executors have one each
void launch_tiles(void (*kernel)(ForwardArguments), const TileNeeds& needs,
                  const ForwardArguments& a, Device& device) {
  launch(kernel, dim3(static_cast<unsigned>(needs.grid_x), static_cast<unsigned>(needs.grid_y)),
         dim3(static_cast<unsigned>(needs.threads)),
         static_cast<std::size_t>(needs.shared_floats) * sizeof(float), device, a);
}

}  // namespace attest
