#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace attest {

/// Reads `bytes` bytes at `data` in `stream`; returns without waiting. Of at least twice the L2,
/// what was in the cache before is no longer in it, and what is there now is clean: a launch behind
/// it pays for none of the writes of others.
[[nodiscard]] cudaError_t launch_read(const void* data, std::size_t bytes, int multiprocessors,
                                      cudaStream_t stream);

}  // namespace attest
