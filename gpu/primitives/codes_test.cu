#include "gpu/primitives/codes.cuh"
#include "gpu/primitives/test_kernels.hpp"

namespace attest {
namespace {

template <typename T, Code code>
__global__ void convert(unsigned* out) {
  const unsigned first = 4 * threadIdx.x;  // 64 threads have all codes
  const unsigned four = first | (first + 1) << 8 | (first + 2) << 16 | (first + 3) << 24;
  unsigned* const to = out + 4 * threadIdx.x;
  numbers_of_codes<T, code>(four, to[0], to[1]);
  numbers_of_alternate_codes<T, code>(four, to[2], to[3]);
}

template <typename T>
auto kernel_of(Code code) {
  return code == Code::e4m3 ? convert<T, Code::e4m3> : convert<T, Code::int8>;
}

}  // namespace

void launch_convert_codes(ElementType type, Code code, unsigned* out, Device& device) {
  const auto kernel =
      type == ElementType::fp16 ? kernel_of<__half>(code) : kernel_of<__nv_bfloat16>(code);
  launch(kernel, dim3(1), dim3(64), 0, device, out);
}

}  // namespace attest
