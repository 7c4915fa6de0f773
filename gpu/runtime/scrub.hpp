#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace attest {

// What earlier work left on a GPU is taken out of the sight of the next launch.

/// Fills the shared memory of every multiprocessor with the bytes 0xff, a NaN in every format, in
/// `stream`; returns without waiting. A kernel launched behind it that reads shared memory which it
/// has not written finds NaN instead of zeros or of plausible numbers. Multiprocessors that are
/// busy with another stream may be missed. `shared_bytes`: what one block can have at most.
[[nodiscard]] cudaError_t launch_poison(int multiprocessors, std::int64_t shared_bytes,
                                        cudaStream_t stream);

/// Reads `bytes` bytes at `data` in `stream`; returns without waiting. Of at least twice the L2,
/// what was in the cache before is no longer in it, and what is there now is clean: a launch behind
/// it pays for none of the writes of others.
[[nodiscard]] cudaError_t launch_read(const void* data, std::size_t bytes, int multiprocessors,
                                      cudaStream_t stream);

}  // namespace attest
