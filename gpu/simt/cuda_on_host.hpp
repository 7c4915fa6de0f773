#pragma once

// Force-included into every .cu file that the host compiler builds for the SIMT executor: CUDA's
// language extensions and device functions in terms of standard C++ and the executor
// (execution.hpp).

#include "gpu/simt/cuda_atomics.hpp"
#include "gpu/simt/cuda_half.hpp"
#include "gpu/simt/cuda_math.hpp"
#include "gpu/simt/cuda_vector_types.hpp"
#include "gpu/simt/cuda_warp.hpp"
#include "gpu/simt/execution.hpp"
#include "gpu/simt/hardware_exp2.hpp"
#include "gpu/simt/hopper.hpp"
#include "gpu/simt/warp_matrix.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
// A block runs on one OS thread, and one block at a time.
#define __shared__ static thread_local

// Functions, so that reading them is no memory access of the kernel.
#define threadIdx (::attest::simt::thread_index())
#define blockIdx (::attest::simt::block_index())
#define blockDim (::attest::simt::block_size())
#define gridDim (::attest::simt::grid_size())
inline constexpr int warpSize = 32;
