#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/test_kernels.hpp"
#include "gpu/primitives/tma.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {
namespace {

constexpr int copiers = 128;

/// The block's shared memory from the first place where a box may begin.
__device__ unsigned char* first_box() {
  unsigned char* const shared = dynamic_shared<unsigned char>();
  return shared + (swizzle_bytes - SharedAddress(shared).value() % swizzle_bytes) % swizzle_bytes;
}

__device__ uint4& chunk_of(const void* bytes, int i) {
  return const_cast<uint4*>(static_cast<const uint4*>(bytes))[i];
}

/// 0xff in shared memory, before the copy engine writes there.
__device__ void fill(unsigned char* to, int bytes) {
  for (int i = static_cast<int>(threadIdx.x); i < bytes / 16; i += copiers) {
    chunk_of(to, i) = make_uint4(~0U, ~0U, ~0U, ~0U);
  }
  fence_async_shared();
}
__device__ void copy(void* to, const void* from, int bytes) {
  for (int i = static_cast<int>(threadIdx.x) % copiers; i < bytes / 16; i += copiers) {
    chunk_of(to, i) = chunk_of(from, i);
  }
}

__device__ BoxStart start_of(const BoxCorner& corner) {
  const int* const at = reinterpret_cast<const int*>(&corner);
  return {at[0], at[1], at[2], at[3]};
}

__global__ void __launch_bounds__(copiers)
    load_boxes(const __grid_constant__ CUtensorMap map, const BoxCorner* corners, int box_bytes,
               std::byte* out) {
  __shared__ unsigned long long arrived;
  const Mbarrier barrier{SharedAddress(&arrived)};
  unsigned char* const box = first_box();
  const int bytes = box_bytes + bytes_after_box;
  if (threadIdx.x == 0) {
    prefetch_map(map);
    barrier.init(1);
    fence_barrier_init();
  }
  fill(box, bytes);
  __syncthreads();
  if (threadIdx.x == 0) {
    // All of the box, also where part of it is outside the tensor: fewer or more bytes than
    // announced, and the phase would never end.
    barrier.arrive_expecting(static_cast<unsigned>(box_bytes));
    load_box(box, map, start_of(corners[blockIdx.x]), barrier, L2Hint::evict_first);
  }
  barrier.wait(0);
  copy(out + std::size_t{blockIdx.x} * bytes, box, bytes);
}

__global__ void __launch_bounds__(copiers)
    store_boxes(const __grid_constant__ CUtensorMap map, const BoxCorner* corners, int box_bytes,
                const std::byte* in) {
  unsigned char* const box = first_box();
  copy(box, in + std::size_t{blockIdx.x} * box_bytes, box_bytes);
  fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    store_box(map, start_of(corners[blockIdx.x]), box);
    commit_stores();
    wait_until_stores_have_read();
  }
  // From here on shared memory may be written again: what was read before is what arrives.
  __syncthreads();
  fill(box, box_bytes);
}

__global__ void __cluster_dims__(2) __launch_bounds__(copiers)
    multicast(const __grid_constant__ CUtensorMap map, unsigned targets_0, unsigned targets_1,
              int box_rows, std::byte* out) {
  __shared__ unsigned long long arrived;
  const Mbarrier barrier{SharedAddress(&arrived)};
  const int box_bytes = box_rows * panel_row_bytes;
  unsigned char* const slots = first_box();
  const unsigned rank = __clusterRelativeBlockRank();
  if (threadIdx.x == 0) {
    barrier.init(1);
    fence_barrier_init();
    const unsigned boxes = (targets_0 >> rank & 1U) + (targets_1 >> rank & 1U);
    barrier.arrive_expecting(boxes * static_cast<unsigned>(box_bytes));
  }
  fill(slots, 2 * box_bytes);
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  const unsigned targets = rank == 0 ? targets_0 : targets_1;
  if (threadIdx.x == 0 && targets != 0) {
    load_box_to(static_cast<unsigned short>(targets), slots + static_cast<int>(rank) * box_bytes,
                map, {.row = static_cast<int>(rank) * box_rows}, barrier, L2Hint::evict_last);
  }
  barrier.wait(0);
  // The other block's box may be anywhere until it has arrived where it was sent.
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  copy(out + std::size_t{rank} * 2 * box_bytes, slots, 2 * box_bytes);
}

constexpr int ring_box_rows = 8, ring_box_bytes = ring_box_rows * panel_row_bytes, largest_ring = 4;
constexpr unsigned pause_ns = 3000;

/// Threads 0 to 127 consume, the warp after them produces.
template <bool is_cluster>
__device__ void pass_through_ring(const CUtensorMap& map, int boxes, int stages, SlowSide slow,
                                  std::byte* out) {
  __shared__ unsigned long long barriers[2 * largest_ring];
  const auto full = [&](int stage) { return Mbarrier{SharedAddress(barriers + stage)}; };
  const auto empty = [&](int stage) {
    return Mbarrier{SharedAddress(barriers + largest_ring + stage)};
  };
  unsigned char* const places = first_box();
  const int rank = is_cluster ? static_cast<int>(__clusterRelativeBlockRank()) : 0;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      full(stage).init(1);
      empty(stage).init((is_cluster ? 2 : 1) * copiers / 32);
    }
    fence_barrier_init();
  }
  if (is_cluster) {
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
  }
  __syncthreads();

  for (int i = 0; i < boxes; ++i) {
    const int stage = i % stages;
    const unsigned parity = static_cast<unsigned>(i / stages) & 1U;
    unsigned char* const place = places + stage * ring_box_bytes;
    if (threadIdx.x >= copiers) {
      if (threadIdx.x != copiers) continue;
      empty(stage).wait(parity ^ 1U);
      if (slow == SlowSide::producer) __nanosleep(pause_ns);
      full(stage).arrive_expecting(ring_box_bytes);
      if (is_cluster) {
        const int half = rank * ring_box_rows / 2;
        load_box_to(3, place + half * panel_row_bytes, map, {.row = i * ring_box_rows + half},
                    full(stage), L2Hint::evict_last);
      } else {
        load_box(place, map, {.row = i * ring_box_rows}, full(stage), L2Hint::evict_first);
      }
    } else {
      full(stage).wait(parity);
      if (slow == SlowSide::consumers && (!is_cluster || rank == 1)) __nanosleep(pause_ns);
      copy(out + (std::size_t(rank) * boxes + i) * ring_box_bytes, place, ring_box_bytes);
      __syncwarp();
      if (threadIdx.x % 32 != 0) continue;
      if (is_cluster) {
        empty(stage).arrive_at(0);
        empty(stage).arrive_at(1);
      } else {
        empty(stage).arrive();
      }
    }
  }
  if (is_cluster) {  // no block leaves while the other may still arrive at its barriers
    __syncwarp();
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
  }
}

__global__ void __launch_bounds__(copiers + 32)
    ring(const __grid_constant__ CUtensorMap map, int boxes, int stages, SlowSide slow,
         std::byte* out) {
  pass_through_ring<false>(map, boxes, stages, slow, out);
}
__global__ void __cluster_dims__(2) __launch_bounds__(copiers + 32)
    cluster_ring(const __grid_constant__ CUtensorMap map, int boxes, int stages, SlowSide slow,
                 std::byte* out) {
  pass_through_ring<true>(map, boxes, stages, slow, out);
}

std::size_t shared_bytes(int boxes_bytes) {
  return static_cast<std::size_t>(boxes_bytes + swizzle_bytes);  // to align the first box
}

}  // namespace

void launch_load_boxes(const CUtensorMap& map, const BoxCorner* corners, int boxes, int box_rows,
                       std::byte* out, Device& device) {
  const int box_bytes = box_rows * panel_row_bytes;
  launch(load_boxes, dim3(static_cast<unsigned>(boxes)), dim3(copiers),
         shared_bytes(box_bytes + bytes_after_box), device, map, corners, box_bytes, out);
}

void launch_store_boxes(const CUtensorMap& map, const BoxCorner* corners, int boxes, int box_rows,
                        const std::byte* in, Device& device) {
  const int box_bytes = box_rows * panel_row_bytes;
  launch(store_boxes, dim3(static_cast<unsigned>(boxes)), dim3(copiers), shared_bytes(box_bytes),
         device, map, corners, box_bytes, in);
}

void launch_multicast(const CUtensorMap& map, std::array<unsigned, 2> targets, int box_rows,
                      std::byte* out, Device& device) {
  launch(multicast, dim3(2), dim3(copiers), shared_bytes(2 * box_rows * panel_row_bytes), device,
         map, targets[0], targets[1], box_rows, out);
}

void launch_ring(const CUtensorMap& map, int boxes, int stages, SlowSide slow, std::byte* out,
                 Device& device) {
  launch(ring, dim3(1), dim3(copiers + 32), shared_bytes(largest_ring * ring_box_bytes), device,
         map, boxes, stages, slow, out);
}

void launch_cluster_ring(const CUtensorMap& map, int boxes, int stages, SlowSide slow,
                         std::byte* out, Device& device) {
  launch(cluster_ring, dim3(2), dim3(copiers + 32), shared_bytes(largest_ring * ring_box_bytes),
         device, map, boxes, stages, slow, out);
}

}  // namespace attest
