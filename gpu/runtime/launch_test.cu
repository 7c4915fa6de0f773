#include "gpu/runtime/launch.hpp"
#include "gpu/runtime/test_kernels.hpp"

namespace attest {
namespace {

__global__ void touch_shared(std::size_t bytes) {
  dynamic_shared<char>()[bytes - 1] = static_cast<char>(threadIdx.x);
}

/// Copies shared memory that this launch has not written.
__global__ void copy_unwritten_shared(unsigned* to, int words) {
  const volatile unsigned* const from = dynamic_shared<unsigned>();
  for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x)) {
    to[blockIdx.x * static_cast<unsigned>(words) + static_cast<unsigned>(i)] = from[i];
  }
}

}  // namespace

void launch_copy_unwritten_shared(unsigned* to, int blocks, int words, Device& device) {
  launch(copy_unwritten_shared, dim3(static_cast<unsigned>(blocks)), dim3(256),
         static_cast<std::size_t>(words) * sizeof(unsigned), device, to, words);
}

void launch_touch_shared(std::size_t bytes, Device& device) {
  launch(touch_shared, dim3(1), dim3(1), bytes, device, bytes);
}

}  // namespace attest
