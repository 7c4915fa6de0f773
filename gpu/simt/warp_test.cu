#include "gpu/primitives/launch.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

constexpr unsigned everyone = 0xffffffffU;

__global__ void look(const int* values, WarpView* views) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % warpSize, value = values[i];
  WarpView v{};
  v.from_lane = __shfl_sync(everyone, value, lane * 7 + 3);
  v.down = __shfl_down_sync(everyone, value, 5U);
  v.up = __shfl_up_sync(everyone, value, 5U);
  v.across = __shfl_xor_sync(everyone, value, 9);
  v.in_groups = __shfl_sync(everyone, value, 2, 8);
  v.ballot = __ballot_sync(everyone, value % 3 == 0);
  v.any = static_cast<unsigned>(__any_sync(everyone, value == 0));
  v.all = static_cast<unsigned>(__all_sync(everyone, value >= 0));
  v.same = __match_any_sync(everyone, value % 4);
  v.sum = __reduce_add_sync(everyone, value);
  v.smallest = __reduce_min_sync(everyone, value);
  v.largest = __reduce_max_sync(everyone, value);
  v.bits_or = __reduce_or_sync(everyone, static_cast<unsigned>(value));
  v.bits_xor = __reduce_xor_sync(everyone, static_cast<unsigned>(value));
  v.float_sum = static_cast<float>(value);
  for (int step = 16; step > 0; step /= 2)
    v.float_sum += __shfl_xor_sync(everyone, v.float_sum, step);
  v.wide = __shfl_xor_sync(everyone, static_cast<long long>(value) << 40, 1);
  views[i] = v;
}

__global__ void split_warp(int* values, int split, int rounds) {
  const int i = static_cast<int>(threadIdx.x), lane = i % warpSize;
  const unsigned low = split == 32 ? everyone : (1U << split) - 1;
  int value = values[i];
  if (lane < split) {
    for (int r = 0; r < rounds; ++r) value = __shfl_sync(low, value, (lane + 1) % split);
  } else {
    const int others = warpSize - split;
    for (int r = 0; r < 2 * rounds; ++r)
      value = __shfl_sync(~low, value, split + (lane - split + 1) % others);
  }
  values[i] = value;
}

__global__ void warp_rounds(int* values, int rounds) {
  int* tile = dynamic_shared<int>();
  const int thread = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int r = 0; r < rounds; ++r) {
    tile[thread] = r + thread;
    __syncwarp();
    sum += tile[thread ^ 1];
    __syncwarp();
  }
  values[thread] = sum;
}

__global__ void vote_of_the_rest(unsigned* votes, int stay) {
  if (static_cast<int>(threadIdx.x) % warpSize >= stay) return;
  votes[blockIdx.x * blockDim.x + threadIdx.x] = __ballot_sync(everyone, 1);
}

__global__ void atomics(const int* values, int* sums) {
  const int value = values[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(sums, value);
  atomicMax(sums + 1, value);
  atomicMin(sums + 2, value);
  for (int seen = sums[3], before; (before = atomicCAS(sums + 3, seen, seen + 1)) != seen;)
    seen = before;
  atomicInc(reinterpret_cast<unsigned*>(sums + 4), 9U);
}

__global__ void indices(int* threads, int* blocks) {
  const dim3 g = gridDim, b = blockDim;
  const unsigned block = blockIdx.x + g.x * (blockIdx.y + g.y * blockIdx.z);
  const unsigned thread = threadIdx.x + b.x * (threadIdx.y + b.y * threadIdx.z);
  const unsigned i = block * b.x * b.y * b.z + thread;
  threads[i] = static_cast<int>(threadIdx.x + 1000 * threadIdx.y + 1000000 * threadIdx.z);
  blocks[i] = static_cast<int>(blockIdx.x + 1000 * blockIdx.y + 1000000 * blockIdx.z);
}

}  // namespace

void launch_look(Device& device, const int* values, WarpView* views, int blocks, int threads) {
  launch(look, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), 0, device,
         values, views);
}
void launch_split_warp(Device& device, int* values, int threads, int split, int rounds) {
  launch(split_warp, dim3(1), dim3(static_cast<unsigned>(threads)), 0, device, values, split,
         rounds);
}
void launch_warp_rounds(Device& device, int* values, int rounds, int threads) {
  launch(warp_rounds, dim3(1), dim3(static_cast<unsigned>(threads)),
         static_cast<std::size_t>(threads) * sizeof(int), device, values, rounds);
}
void launch_vote_of_the_rest(Device& device, unsigned* votes, int stay, int blocks) {
  launch(vote_of_the_rest, dim3(static_cast<unsigned>(blocks)), dim3(64), 0, device, votes, stay);
}
void launch_atomics(Device& device, const int* values, int* sums, int blocks, int threads) {
  launch(atomics, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), 0,
         device, values, sums);
}
void launch_indices(Device& device, int* threads, int* blocks) {
  launch(indices, dim3(3, 4, 2), dim3(5, 2, 7), 0, device, threads, blocks);
}

}  // namespace attest
