#pragma once

// How a kernel's host side makes the maps that its copies take (tma.cuh), on the GPU and on the
// executor:
//   TensorMap                what the kernel receives as a `const __grid_constant__` parameter
//   tensor_map(BoxedTensor)  makes one
#include "gpu/primitives/tma.cuh"
#ifdef __CUDACC__
#include "gpu/runtime/tensor_map.hpp"
#else
#include "gpu/simt/tensor_map.hpp"
#endif
