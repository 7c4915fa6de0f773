// How fast TMA brings tiles from L2 to shared memory, in the order in which attention reads K and
// V.
#include <cuda.h>

#include "gpu/microbench/kernels.hpp"
#include "gpu/microbench/sm_span.cuh"
#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest::microbench {
namespace {

constexpr int stages = 12, tile_bytes = stream_tile_bytes, tile_words = tile_bytes / 4;

__device__ int cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
/// Mbarrier::arrive_at() without its release at cluster scope, a fence of all memory: here nothing
/// but the copy engine writes what the other block waits for.
__device__ void arrive_at(const Mbarrier& barrier, unsigned rank) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier.address()),
      "r"(rank)
      : "memory");
}

// One thread asks for tiles, `stages` ahead, and waits for them. Of a pair each block asks for half
// of every tile for both, once both have done with the place.
template <bool multicast, int boxes>
__global__ void __launch_bounds__(128, 1)
    stream(const __grid_constant__ CUtensorMap map, int tiles, int range_tiles, int ranges,
           const std::uint32_t* data, SmSpan* spans) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ __align__(8) std::uint64_t barriers[2 * stages];
  __shared__ std::uint32_t all_difference;
  const auto full = [&](int stage) { return Mbarrier(SharedAddress(&barriers[stage])); };
  const auto empty = [&](int stage) { return Mbarrier(SharedAddress(&barriers[stages + stage])); };
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      full(stage).init(1);
      empty(stage).init(2);
    }
    fence_barrier_init();
  }
  if (multicast) cluster_sync();
  begin_span(spans[blockIdx.x]);
  // Both of a pair read one range.
  const int reader = static_cast<int>(blockIdx.x) / (multicast ? 2 : 1) * (multicast ? 2 : 1);
  const int range = reader * ranges / static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    const int first_row = range * range_tiles * stream_tile_rows;
    const int end_row = first_row + range_tiles * stream_tile_rows;
    int row = first_row;
    const auto ask = [&](int stage) {
      const SharedAddress target = SharedAddress(shared) + stage * tile_bytes;
      full(stage).arrive_expecting(tile_bytes);
      if constexpr (multicast) {
        const int half = cluster_rank();
        load_box_to(3, target + half * tile_bytes / 2, map,
                    {.row = row + half * stream_tile_rows / 2}, full(stage), L2Hint::evict_last);
      } else {
#pragma unroll
        for (int box = 0; box < boxes; ++box) {
          load_box(target + box * (tile_bytes / boxes), map,
                   {.row = row + box * (stream_tile_rows / boxes)}, full(stage),
                   L2Hint::evict_last);
        }
      }
      row += stream_tile_rows;
      if (row == end_row) row = first_row;
    };
    for (int stage = 0; stage < stages; ++stage) ask(stage);
    int stage = 0;
    unsigned parity = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      full(stage).wait(parity);
      if (tile + stages < tiles) {
        if constexpr (multicast) {
          arrive_at(empty(stage), 0);
          arrive_at(empty(stage), 1);
          empty(stage).wait(parity);
        }
        ask(stage);
      }
      if (++stage == stages) {
        stage = 0;
        parity ^= 1U;
      }
    }
  }
  end_span(spans[blockIdx.x]);

  // Did the last tiles arrive? The words of a tile are permuted by the swizzle; their XOR is not.
  std::uint32_t difference = 0;
  for (int i = static_cast<int>(threadIdx.x); i < stages * tile_words;
       i += static_cast<int>(blockDim.x)) {
    const int tile = (tiles - stages + i / tile_words) % range_tiles;
    difference ^= reinterpret_cast<const std::uint32_t*>(shared)[i] ^
                  data[(std::int64_t{range} * range_tiles + tile) * tile_words + i % tile_words];
  }
  if (threadIdx.x == 0) all_difference = 0;
  __syncthreads();
  atomicXor(&all_difference, difference);
  __syncthreads();
  if (threadIdx.x == 0) spans[blockIdx.x].work = all_difference == 0 ? 1 : 0;
  if (multicast) cluster_sync();
}

}  // namespace

void launch_stream(Sharing sharing, const CUtensorMap& map, int blocks, int tiles, int range_tiles,
                   int ranges, const std::uint32_t* data, SmSpan* spans) {
  const bool multicast = sharing == Sharing::halves_for_both;
  const auto kernel = multicast                            ? stream<true, 2>
                      : sharing == Sharing::none_in_halves ? stream<false, 2>
                                                           : stream<false, 1>;
  constexpr int shared_bytes = stages * tile_bytes;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = multicast ? 2 : 1;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, map, tiles, range_tiles, ranges, data, spans);
}

}  // namespace attest::microbench
