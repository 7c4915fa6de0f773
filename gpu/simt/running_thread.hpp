#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/simt/cuda_vector_types.hpp"
#include "gpu/simt/shadow.hpp"

namespace attest::simt {

class BlockRunner;
class LaunchTracer;

/// Memory whose every 4-byte word has a Cell. Its start is aligned to 256 bytes.
struct ShadowedMemory {
  std::uintptr_t base = 0;
  std::size_t size_bytes = 0;
  Cell* cells = nullptr;
  std::uint8_t* written_bytes =
      nullptr;  ///< of words whose write stamp is `incomplete`: a bit a byte
};

/// State of the thread that runs on this OS thread, for the hooks and the CUDA built-ins. Outside a
/// block all sizes are 0, so that no access is checked.
struct RunningThread {
  ShadowedMemory shared;         ///< the part that the launch asked for
  ShadowedMemory global;         ///< the device's whole arena
  ShadowedMemory static_shared;  ///< this OS thread's thread-local variables
  ShadowedMemory shared_guards;  ///< `shared` and what surrounds it
  Stamp stamp = 0;               ///< of the thread now; bytes and tag are 0
  Stamp launch_start = 0;        ///< stamps from here on were made by this launch
  /// Stamps of global memory from here to launch_start were made by the launch before, which is not
  /// over for this thread: it has not waited.
  Stamp predecessor_start = 0;
  Stamp block_start = 0;
  Stamp interval_start = 0;

  uint3 thread{}, block{};
  dim3 block_size, grid_size;
  BlockRunner* runner = nullptr;
  /// The block runs in a cluster: the size of `shared` is then 0 and the guards seem to cover
  /// everything, so that every access takes the long way, which knows the cluster.
  bool is_in_cluster = false;
  /// Tracer of the launch, if not null: accesses are counted and not checked. The sizes of the
  /// memories above are then 0, but for the guards, which seem to cover everything.
  LaunchTracer* tracer = nullptr;
  std::uint64_t fmas = 0;  ///< that threads of this block did
};

extern constinit thread_local RunningThread running_thread;

}  // namespace attest::simt
