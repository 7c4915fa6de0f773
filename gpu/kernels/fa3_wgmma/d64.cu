#include "gpu/kernels/fa3_wgmma/tiles.cuh"
#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {
using namespace fa3_tiles::d64;

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 64>() {
  return fa3_variants_of<this_executor, __half, longer, shorter, four_groups,
                         with(shorter, &Fa3Choice::splits), with(shorter, &Fa3Choice::ragged),
                         listed, ended, masked, with(masked, &Fa3Choice::softcap), modified>;
}

/// One type is enough for studies: these, too, are verified.
template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 64>() {
  return fa3_variants_of<this_executor, __nv_bfloat16, longer, shorter, four_groups,
                         with(shorter, &Fa3Choice::splits), with(shorter, &Fa3Choice::ragged),
                         with(two_groups, &Fa3Choice::ping_pong), with(shorter, &Fa3Choice::delays),
                         listed, ended, masked, with(masked, &Fa3Choice::softcap), modified>;
}

}  // namespace attest
