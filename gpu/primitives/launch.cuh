#pragma once

// A kernel is compiled twice: by nvcc for the GPU, by the host compiler for the SIMT executor.
// Both sides define
//   launch(kernel, grid, block, shared_bytes, device, args...)
//                        checks sizes on the host, launches, checks for errors
//   resident_blocks(kernel, block, shared_bytes, device)
//                        how many blocks run at once
//   dynamic_shared<T>()  the block's dynamic shared memory, 16-byte aligned
//   this_executor        what to register the kernel for
#ifdef __CUDACC__
#include "gpu/runtime/launch.hpp"
#else
#include "gpu/simt/launch.hpp"
#endif
