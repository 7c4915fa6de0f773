#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/test_kernels.hpp"
#include "gpu/primitives/warpgroup.cuh"

namespace attest {
namespace {

constexpr unsigned laggard_ns = 3000;

__device__ int group_of_thread() {
  return __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
}

__global__ void __launch_bounds__(2 * warpgroup_threads) turns(int rounds, int slow, int* order) {
  __shared__ int taken;
  if (threadIdx.x == 0) taken = 0;
  __syncthreads();
  const int group = group_of_thread();
  constexpr int both = 2 * warpgroup_threads;
  if (group == 1) arrive_named(1, both);  // as if the second had had its turn
  for (int round = 0; round < rounds; ++round) {
    if (group == 0) {
      sync_named(1, both);
    } else {
      sync_named(2, both);
    }
    if (group == slow) __nanosleep(laggard_ns);
    if (threadIdx.x % warpgroup_threads == 0) order[atomicAdd(&taken, 1)] = group;
    if (group == 0) {
      arrive_named(2, both);
    } else if (round < rounds - 1) {
      arrive_named(1, both);
    }
  }
}

__global__ void __launch_bounds__(2 * warpgroup_threads)
    meetings(int rounds_0, int rounds_1, int* wrong) {
  __shared__ int numbers[2][2][warpgroup_threads];
  const int group = group_of_thread(), thread = static_cast<int>(threadIdx.x) % warpgroup_threads;
  const int rounds = group == 0 ? rounds_0 : rounds_1;
  int missing = 0;
  for (int round = 0; round < rounds; ++round) {
    if (thread / 32 == round % 4) __nanosleep(laggard_ns);
    volatile int* const now = numbers[group][round % 2];
    now[thread] = round * warpgroup_threads + thread;
    if (group == 0) {
      sync_named(1, warpgroup_threads);
    } else {
      sync_named(2, warpgroup_threads);
    }
    const int neighbour = (thread + 32) % warpgroup_threads;
    if (now[neighbour] != round * warpgroup_threads + neighbour) ++missing;
  }
  atomicAdd(wrong + group, missing);
}

__global__ void elections(int* elected) {
  elected[threadIdx.x] = is_elected() ? 1 : 0;
  elected[blockDim.x + threadIdx.x] = is_elected() ? 1 : 0;
}

__device__ __forceinline__ void hold_values(const float* in, float* out) {
  const auto at = [](int i) { return i * holding_threads + static_cast<int>(threadIdx.x); };
  float values[held_values];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < held_values; ++i)
    values[i] = reinterpret_cast<const volatile float*>(in)[at(i)];
#pragma unroll
  for (int i = 0; i < held_values; ++i) sum += values[i];
#pragma unroll
  for (int i = 0; i < held_values; ++i) out[at(i)] = values[i] + sum;
}

__global__ void __launch_bounds__(holding_threads, 1) holding(const float* in, float* out) {
  if (group_of_thread() == 0) {
    release_registers<24>();
    sync_named(1, holding_threads);
    take_registers<240>();
    hold_values(in, out);
  } else {
    take_registers<240>();
    hold_values(in, out);
    release_registers<24>();
    sync_named(1, holding_threads);
  }
}

}  // namespace

void launch_turns(int rounds, int slow, int* order, Device& device) {
  launch(turns, dim3(1), dim3(2 * warpgroup_threads), 0, device, rounds, slow, order);
}

void launch_meetings(int rounds_0, int rounds_1, int* wrong, Device& device) {
  launch(meetings, dim3(1), dim3(2 * warpgroup_threads), 0, device, rounds_0, rounds_1, wrong);
}

void launch_elections(int* elected, Device& device) {
  launch(elections, dim3(1), dim3(64), 0, device, elected);
}

void launch_holding(const float* in, float* out, Device& device) {
  launch(holding, dim3(1), dim3(holding_threads), 0, device, in, out);
}

}  // namespace attest
