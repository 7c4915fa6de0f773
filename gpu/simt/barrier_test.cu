#include "gpu/primitives/launch.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

/// Every thread passes its value to the next one, `rounds` times.
__global__ void rotate(int* values, int rounds) {
  int* tile = dynamic_shared<int>();
  const int n = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
  int* mine = values + blockIdx.x * blockDim.x;
  int value = mine[t];
  for (int r = 0; r < rounds; ++r) {
    tile[t] = value;
    __syncthreads();
    value = tile[(t + 1) % n];
    __syncthreads();
  }
  mine[t] = value;
}

}  // namespace

void launch_rotate(Device& device, int* values, int blocks, int threads, int rounds) {
  launch(rotate, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
         static_cast<std::size_t>(threads) * sizeof(int), device, values, rounds);
}

}  // namespace attest
