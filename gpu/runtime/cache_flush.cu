#include <cstdint>

#include "gpu/runtime/cache_flush.hpp"

namespace attest {
namespace {

constexpr int threads = 1024;

__global__ void __launch_bounds__(threads) read_all(const uint4* data, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * threads;
  for (std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    // Volatile twice, for nvcc and for ptxas: nobody uses what is read.
    asm volatile(
        "{ .reg .b32 a, b, c, d; ld.volatile.global.v4.b32 {a, b, c, d}, [%0]; }" ::"l"(data + i));
  }
}

}  // namespace

cudaError_t launch_read(const void* data, std::size_t bytes, int multiprocessors,
                        cudaStream_t stream) {
  read_all<<<2 * multiprocessors, threads, 0, stream>>>(static_cast<const uint4*>(data),
                                                        bytes / sizeof(uint4));
  return cudaGetLastError();
}

}  // namespace attest
