#include "core/operations/forward_arguments.hpp"
#include "gpu/primitives/grid_order.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

constexpr int threads = 64;

template <Scheduling::Value scheduling>
__global__ void count_tiles(ForwardArguments a, TileLaunch launch) {
  const TileGrid tiles = output_tiles(a.problem, a.plan);
  for_each_tile<scheduling>(a, launch, [&](const TilePosition& at) {
    std::int64_t* const shared = dynamic_shared<std::int64_t>();
    const std::int64_t tile = at.head * tiles.tiles + at.tile;
    const unsigned thread = threadIdx.x;
    shared[thread] = tile;
    __syncthreads();
    const bool is_mine = shared[(thread + threads / 2) % threads] == tile;
    int* const count = static_cast<int*>(a.o) + tile;
    if (!is_mine) atomicAdd(count, 1000);
    if (thread % 3 == 1) return;  // threads leave a tile apart
    if (thread == 0) atomicAdd(count, 1);
  });
}

}  // namespace

void launch_count_tiles(const ForwardArguments& a, Device& device) {
  const BlockGrid grid = block_grid(a.problem, a.plan);
  const TileNeeds needs{.threads = threads,
                        .shared_floats = threads * 2,  // an int64 each
                        .grid_x = grid.x,
                        .grid_y = grid.y};
  launch_output_tiles({count_tiles<Scheduling::one_tile>, count_tiles<Scheduling::persistent>},
                      needs, a, device);
}

}  // namespace attest
