#include "gpu/runtime/launch.hpp"
#include "gpu/runtime/launch_test.hpp"

namespace attest {
namespace {

__global__ void touch_shared(std::size_t bytes) {
  dynamic_shared<char>()[bytes - 1] = static_cast<char>(threadIdx.x);
}

}  // namespace

void launch_touch_shared(std::size_t bytes, Device& device) {
  launch(touch_shared, dim3(1), dim3(1), bytes, device, bytes);
}

}  // namespace attest
