#include "gpu/kernels/decode_mma/prefix_wgmma.cuh"

namespace attest {

template <>
PrefixLaunch prefix_launch<this_executor, __half, 64>() {
  return launch_prefix<this_executor, __half, 64>;
}
template <>
PrefixLaunch prefix_launch<this_executor, __half, 128>() {
  return launch_prefix<this_executor, __half, 128>;
}
template <>
PrefixLaunch prefix_launch<this_executor, __nv_bfloat16, 64>() {
  return launch_prefix<this_executor, __nv_bfloat16, 64>;
}
template <>
PrefixLaunch prefix_launch<this_executor, __nv_bfloat16, 128>() {
  return launch_prefix<this_executor, __nv_bfloat16, 128>;
}

}  // namespace attest
