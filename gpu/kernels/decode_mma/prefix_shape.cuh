#pragma once

// Cascade::yes with Overlap::yes: how a block that takes a chunk of the shared keys is made.

#include "core/base/host_device.hpp"
#include "gpu/kernels/decode_mma/chunks.cuh"
#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/tma.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// Sizes of a block, and where what lies in its shared memory.
template <typename T_, int D_>
struct PrefixShape {
  using T = T_;
  static constexpr int D = D_;
  static constexpr int consumers = 2;  ///< warpgroups that multiply, each 64 packed rows
  static constexpr int group_rows = 64, rows = consumers * group_rows;
  static constexpr int tile_keys = prefix_tile_keys;  ///< of a step
  static constexpr int stages = 3;                    ///< tiles of K, and of V, in shared memory
  static constexpr int threads = (consumers + 1) * warpgroup_threads;
  enum NamedBarrier : int {  ///< 0 is that of __syncthreads()
    has_queries = 1  ///< of group 0 alone: its rows of Q have arrived; that of group 1 follows
  };
  static constexpr int loader_registers = 40, consumer_registers = 232;
  /// A block begins with 168 registers a thread, and who asks for more than it has waits for ever.
  static_assert(loader_registers + consumers * consumer_registers <= (consumers + 1) * 168);

  // Panels of 64 columns.
  static constexpr int panels = D / panel_columns;
  static constexpr int query_panel_bytes = group_rows * panel_row_bytes;
  static constexpr int query_bytes = panels * query_panel_bytes;  ///< of a warpgroup
  static constexpr int panel_bytes = tile_keys * panel_row_bytes;
  static constexpr int tile_bytes = panels * panel_bytes;

  static constexpr int k_at = consumers * query_bytes;  ///< Q is first
  static constexpr int v_at = k_at + stages * tile_bytes;
  static constexpr int barriers_at = v_at + stages * tile_bytes;
  static constexpr int barriers = 4 * stages;
  static constexpr int shared_bytes = barriers_at + 8 * barriers;
};

/// Parameters of a launch, for its blocks: a `const __grid_constant__` parameter, since the copy
/// engine reads the maps in place.
struct PrefixParameters {
  TensorMap k, v;
  ForwardArguments a;
  DecodeSizes sizes;  ///< tile_rows: PrefixShape::rows
  int box_rows;       ///< of a box: divides a tile and a page; below 8: lanes copy rows
  float c;            ///< scale * log2(e), or 1 with factor
  float factor;       ///< scores are multiplied by it first; 1 where c is positive
};

/// One of K and V in shared memory: tiles, a barrier on which a tile's bytes arrive, and one at
/// which its readers do.
template <typename Shape>
struct PrefixRing {
  SharedAddress tiles, barriers;

  __device__ SharedAddress tile(int n) const {
    return tiles + n % Shape::stages * Shape::tile_bytes;
  }
  __device__ Mbarrier full(int n) const { return Mbarrier(barriers + 8 * (n % Shape::stages)); }
  __device__ Mbarrier empty(int n) const {
    return Mbarrier(barriers + 8 * (Shape::stages + n % Shape::stages));
  }
  /// The parity of the phase in which tile `n` arrives.
  static __device__ unsigned parity(int n) { return static_cast<unsigned>(n / Shape::stages) % 2; }
  /// One thread, before a barrier of the block.
  __device__ void init() const {
    for (int i = 0; i < Shape::stages; ++i) {
      full(i).init(1);
      empty(i).init(4 * Shape::consumers);
    }
  }
};

template <typename Shape>
struct PrefixShared {
  SharedAddress base;

  /// `shared` is aligned to swizzle_bytes.
  __device__ explicit PrefixShared(unsigned char* shared) : base(shared) {}

  __device__ SharedAddress queries(int group) const { return base + group * Shape::query_bytes; }
  __device__ PrefixRing<Shape> k() const { return {base + Shape::k_at, base + Shape::barriers_at}; }
  __device__ PrefixRing<Shape> v() const {
    return {base + Shape::v_at, base + (Shape::barriers_at + 16 * Shape::stages)};
  }
  /// One thread, before a barrier of the block.
  __device__ void init() const {
#ifdef __CUDACC__
    if (base.value() % swizzle_bytes != 0) __trap();  // no block has ever begun elsewhere
#endif
    k().init();
    v().init();
    fence_barrier_init();
  }
};

}  // namespace attest
