#include "gpu/kernels/fa3_wgmma/tiles.cuh"
#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {
using namespace fa3_tiles::d128;

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 128>() {
  return fa3_variants_of<this_executor, __half, overlapped, two_groups,
                         with(overlapped, &Fa3Choice::splits), with(overlapped, &Fa3Choice::ragged),
                         listed, masked, with(masked, &Fa3Choice::softcap), modified>;
}

/// One type is enough for studies: these, too, are verified.
template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 128>() {
  return fa3_variants_of<this_executor, __nv_bfloat16, overlapped, two_groups,
                         with(overlapped, &Fa3Choice::splits), with(overlapped, &Fa3Choice::ragged),
                         with(overlapped, &Fa3Choice::ping_pong), serial,
                         with(serial, &Fa3Choice::ping_pong), with(two_groups, &Fa3Choice::delays),
                         listed, masked, with(masked, &Fa3Choice::softcap), modified>;
}

}  // namespace attest
