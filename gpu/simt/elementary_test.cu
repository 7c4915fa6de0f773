#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/natural_log.cuh"
#include "gpu/primitives/softcap.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

__global__ void evaluate(Elementary f, const float* x, float* y, int count) {
  const int step = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += step) {
    y[i] = f == Elementary::exp2          ? HardwareExp2::of(x[i])
           : f == Elementary::natural_log ? ln_of(x[i])
                                          : tanh_of(x[i]);
  }
}

}  // namespace

void launch_elementary(Device& device, Elementary f, const float* x, float* y, int count) {
  launch(evaluate, dim3(8), dim3(32), 0, device, f, x, y, count);
}

}  // namespace attest
