#include "gpu/primitives/cluster.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

__global__ void add_neighbours(int cluster, int steps, ClusterBug bug, int* out) {
  const auto thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x),
             block = static_cast<int>(blockIdx.x);
  int* const tile = dynamic_shared<int>();
  int* const behind = Cluster::in_block(tile, (block % cluster + 1) % cluster);
  if (bug != ClusterBug::unwritten) tile[thread] = block;
  for (int step = 0; step < steps; ++step) {
    if (bug != ClusterBug::not_before_reading) {
      Cluster::arrive();
      if (bug != ClusterBug::no_wait) Cluster::wait();
    }
    const int place = thread + (bug == ClusterBug::past_the_end ? threads : 0);
    const int sum = tile[thread] + behind[place];
    const bool is_last = step == steps - 1;
    if (bug == ClusterBug::thread_exits && is_last && thread == 0) return;
    if (bug != ClusterBug::not_before_writing && !(bug == ClusterBug::not_at_the_end && is_last)) {
      Cluster::arrive();
      Cluster::wait();
    }
    tile[thread] = sum;
  }
  out[block * threads + thread] = tile[thread];
}

/// Every block writes a number to a place of its own in the shared memory of every block.
__global__ void write_to_all(int cluster, bool begins_at_once, int* out) {
  const auto rank = static_cast<int>(blockIdx.x) % cluster, thread = static_cast<int>(threadIdx.x);
  int* const slots = dynamic_shared<int>();
  if (!begins_at_once) {
    Cluster::arrive();
    Cluster::wait();
  }
  if (thread < cluster) Cluster::in_block(slots, thread)[rank] = 100 * rank + thread;
  Cluster::arrive();
  Cluster::wait();
  if (thread < cluster) out[static_cast<int>(blockIdx.x) * cluster + thread] = slots[thread];
}

}  // namespace

void launch_add_neighbours(Device& device, int clusters, int cluster, int threads, int steps,
                           ClusterBug bug, int* out) {
  launch_clusters(add_neighbours, static_cast<unsigned>(cluster),
                  dim3(static_cast<unsigned>(clusters * cluster)),
                  dim3(static_cast<unsigned>(threads)),
                  sizeof(int) * static_cast<unsigned>(threads), device, cluster, steps, bug, out);
}
void launch_write_to_all(Device& device, int clusters, int cluster, bool begins_at_once, int* out) {
  launch_clusters(
      write_to_all, static_cast<unsigned>(cluster), dim3(static_cast<unsigned>(clusters * cluster)),
      dim3(32), sizeof(int) * static_cast<unsigned>(cluster), device, cluster, begins_at_once, out);
}

}  // namespace attest
