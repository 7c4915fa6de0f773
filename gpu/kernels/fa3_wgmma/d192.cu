#include "gpu/kernels/fa3_wgmma/tiles.cuh"
#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {
using namespace fa3_tiles::d192;

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 192>() {
  return fa3_variants_of<this_executor, __half, tiles, with(tiles, &Fa3Choice::splits),
                         narrow_values>;
}

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 192>() {
  return fa3_variants_of<this_executor, __nv_bfloat16, tiles, with(tiles, &Fa3Choice::splits),
                         narrow_values>;
}

}  // namespace attest
