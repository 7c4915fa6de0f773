#include "gpu/kernels/fp8_wgmma/variant.cuh"

namespace attest {
namespace {

/// The softmax takes most of the time: a third group hides more of it than a product in flight.
constexpr Fa3Choice serial{.dim = 64,
                           .consumers = 3,
                           .key_tile = 128,
                           .k_stages = 3,
                           .v_stages = 2,
                           .q_stages = 2,
                           .o_panels = 1};
constexpr Fa3Choice overlapped{.dim = 64,
                               .consumers = 2,
                               .key_tile = 128,
                               .k_stages = 3,
                               .v_stages = 2,
                               .q_stages = 2,
                               .o_panels = 1,
                               .overlap = true};

}  // namespace

template <>
std::span<const Fp8Variant> fp8_variants<this_executor, __half, 64>() {
  return fp8_variants_of<this_executor, __half, serial>;
}

/// One type is enough for studies: these, too, are verified.
template <>
std::span<const Fp8Variant> fp8_variants<this_executor, __nv_bfloat16, 64>() {
  return fp8_variants_of<this_executor, __nv_bfloat16, serial, overlapped,
                         with(serial, &Fa3Choice::delays)>;
}

}  // namespace attest
