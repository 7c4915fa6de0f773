#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "gpu/runtime/cuda_error.hpp"

namespace attest {

/// Copies `rows` pieces of `bytes` bytes, `to_pitch` and `from_pitch` bytes apart, in the stream;
/// from any memory that its GPU reaches into any.
inline void copy_pitched(cudaStream_t stream, std::byte* to, std::size_t to_pitch,
                         const std::byte* from, std::size_t from_pitch, std::size_t bytes,
                         std::size_t rows) {
  if (bytes == 0 || rows == 0) return;
  if (rows == 1 || (to_pitch == bytes && from_pitch == bytes)) {
    ATTEST_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes * rows, cudaMemcpyDefault, stream));
  } else {
    ATTEST_CUDA_CHECK(
        cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, bytes, rows, cudaMemcpyDefault, stream));
  }
}

}  // namespace attest
