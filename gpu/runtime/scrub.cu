#include <cstdint>

#include "gpu/runtime/scrub.hpp"

namespace attest {
namespace {

constexpr int threads = 1024;

__global__ void __launch_bounds__(threads) fill_shared_with_nan(int words) {
  extern __shared__ unsigned shared_words[];
  // Volatile: nothing reads what is stored here, so the compiler would drop it.
  volatile unsigned* const to = shared_words;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += threads) to[i] = 0xffffffffU;
  // A block has its multiprocessor to itself. It stays for a while, so that blocks that have not
  // started yet go to the others.
  __nanosleep(2000);
}

__global__ void __launch_bounds__(threads) read_all(const uint4* data, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * threads;
  for (std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
    // Volatile twice, for nvcc and for ptxas: nobody uses what is read.
    asm volatile(
        "{ .reg .b32 a, b, c, d; ld.volatile.global.v4.b32 {a, b, c, d}, [%0]; }" ::"l"(data + i));
  }
}

}  // namespace

cudaError_t launch_poison(int multiprocessors, std::int64_t shared_bytes, cudaStream_t stream) {
  const auto bytes = static_cast<int>(shared_bytes);
  const cudaError_t allowed = cudaFuncSetAttribute(
      fill_shared_with_nan, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (allowed != cudaSuccess) return allowed;
  fill_shared_with_nan<<<2 * multiprocessors, threads, static_cast<std::size_t>(bytes), stream>>>(
      bytes / static_cast<int>(sizeof(unsigned)));
  return cudaGetLastError();
}

cudaError_t launch_read(const void* data, std::size_t bytes, int multiprocessors,
                        cudaStream_t stream) {
  read_all<<<2 * multiprocessors, threads, 0, stream>>>(static_cast<const uint4*>(data),
                                                        bytes / sizeof(uint4));
  return cudaGetLastError();
}

}  // namespace attest
