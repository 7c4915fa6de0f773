#include "gpu/primitives/cluster.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/test_kernels.hpp"

namespace attest {
namespace {

__global__ void add_neighbours(int cluster, int steps, int slow, int* out) {
  const auto thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x),
             rank = static_cast<int>(blockIdx.x) % cluster;
  int* const tile = dynamic_shared<int>();
  const int* const behind = Cluster::in_block(tile, (rank + 1) % cluster);
  tile[thread] = static_cast<int>(blockIdx.x);
  for (int step = 0; step < steps; ++step) {
    if (rank == slow) __nanosleep(2000);
    Cluster::arrive();
    Cluster::wait();
    if (rank == slow) __nanosleep(2000);
    const int sum = tile[thread] + behind[threads - 1 - thread];
    Cluster::arrive();
    Cluster::wait();
    tile[thread] = sum;
  }
  out[static_cast<int>(blockIdx.x) * threads + thread] = tile[thread];
}

}  // namespace

void launch_add_neighbours(int clusters, int cluster, int threads, int steps, int slow, int* out,
                           Device& device) {
  launch_clusters(add_neighbours, static_cast<unsigned>(cluster),
                  dim3(static_cast<unsigned>(clusters * cluster)),
                  dim3(static_cast<unsigned>(threads)),
                  sizeof(int) * static_cast<unsigned>(threads), device, cluster, steps, slow, out);
}

}  // namespace attest
