#include "gpu/primitives/launch.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

__global__ void run_program(const Instruction* program, int steps, int* global, int* sink,
                            bool in_shared) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int* words = in_shared ? dynamic_shared<int>() : global;
  if (in_shared) {
    for (unsigned i = threadIdx.x; i < 32; i += blockDim.x) words[i] = 0;
    __syncthreads();
  }
  int sum = 0;
  for (int s = 0; s < steps; ++s) {
    const Instruction now = program[thread * steps + s];
    if (now.step == Step::read) sum += words[now.word];
    if (now.step == Step::write) words[now.word] = thread;
    if (now.step == Step::update) atomicAdd(words + now.word, 1);
    if (now.step == Step::meet_warp) sum += __shfl_sync(0xffffffffU, sum, 0);
    if (now.step == Step::sync_warp) __syncwarp();
    if (now.step == Step::sync_block) __syncthreads();
  }
  sink[thread] = sum;
}

__global__ void arrive(int* order, unsigned* counter) {
  order[atomicAdd(counter, 1U)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

}  // namespace

void launch_program(Device& device, const Instruction* program, int steps, int* global, int* sink,
                    bool in_shared, int blocks, int threads) {
  launch(run_program, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
         128, device, program, steps, global, sink, in_shared);
}
void launch_arrival(Device& device, int* order, unsigned* counter, int blocks, int threads) {
  launch(arrive, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), 0,
         device, order, counter);
}

}  // namespace attest
