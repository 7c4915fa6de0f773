// What kernels share still compiles for sm_80: one shape of fa2_mma, with its products and copies.
#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/fa2_mma/variant.cuh"

namespace attest {

template __global__ void fa2_mma<this_executor, Fa2Shape<__half, 32, 64, 64, 4, 2>,
                                 Scheduling::one_tile>(ForwardArguments, TileLaunch);

}  // namespace attest
