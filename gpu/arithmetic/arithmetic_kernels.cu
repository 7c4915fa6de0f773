#include "gpu/arithmetic/arithmetic_kernels.hpp"
#include "gpu/arithmetic/exp2_mark.hpp"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {
namespace {

// Fragments straight from global memory; mma.cuh draws them.
template <typename T>
__global__ void products(const std::uint32_t* a, const std::uint32_t* b, const float* c, float* d) {
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  const int block = static_cast<int>(blockIdx.x);
  float df[4];
  for (int i = 0; i < 4; ++i) df[i] = c[block * 128 + (g + i / 2 * 8) * 8 + 2 * t + i % 2];
  unsigned af[4], bf[2];
  if constexpr (std::is_same_v<T, float>) {
    const std::uint32_t* const A = a + block * 16 * 8;
    const std::uint32_t* const B = b + block * 8 * 8;
    for (int r = 0; r < 4; ++r) af[r] = A[(g + r % 2 * 8) * 8 + t + r / 2 * 4];
    for (int r = 0; r < 2; ++r) bf[r] = B[(t + r * 4) * 8 + g];
    mma_16x8x8_tf32(df, af, bf);
  } else {
    const std::uint32_t* const A = a + block * 16 * 16;
    const std::uint32_t* const B = b + block * 16 * 8;
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t* const pair = A + (g + r % 2 * 8) * 16 + 2 * t + r / 2 * 8;
      af[r] = pair[0] | pair[1] << 16;
    }
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t* const pair = B + (2 * t + r * 8) * 8 + g;
      bf[r] = pair[0] | pair[8] << 16;
    }
    mma_16x8x16<T>(df, af, bf);
  }
  for (int i = 0; i < 4; ++i) d[block * 128 + (g + i / 2 * 8) * 8 + 2 * t + i % 2] = df[i];
}

__global__ void sum_exp2_marks(std::uint32_t part, unsigned long long* sum) {
  const std::uint32_t step = gridDim.x * blockDim.x;
  unsigned long long mine = 0;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < 1U << 23U; i += step) {
    const std::uint32_t x = part << 23U | i;
    mine += exp2_mark(x, __float_as_uint(HardwareExp2::of(__uint_as_float(x))));
  }
  atomicAdd(sum, mine);
}

void launch_products(Device& device, ElementType type, const std::uint32_t* a,
                     const std::uint32_t* b, const float* c, float* d, int blocks) {
  const auto kernel =
      with_cuda_type(type, []<typename T>(std::type_identity<T>) { return products<T>; });
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(32), 0, device, a, b, c, d);
}

void launch_exp2_marks(Device& device, unsigned part, unsigned long long* sum) {
  launch(sum_exp2_marks, dim3(256), dim3(32), 0, device, part, sum);
}

const ArithmeticKernelsRegistration registration{
    {this_executor, launch_products, launch_exp2_marks}};

}  // namespace
}  // namespace attest
