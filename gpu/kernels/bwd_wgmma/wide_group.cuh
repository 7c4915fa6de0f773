#pragma once

#include "gpu/kernels/bwd_wgmma/wide_rings.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma_begin.cuh"

namespace attest {

/// Base of the multiplying warpgroups of the wide kernel. Results [64, Bc] of a product have keys
/// as columns: S and dP, whose rows are queries, and 64 columns of dV^T or dK^T. They go to shared
/// memory transposed, as tiles [Bc, 64].
template <typename Shape>
struct BwdWideGroup : BwdThread {
  using T = typename Shape::T;
  static constexpr int Bc = Shape::Bc, Br = Shape::Br, panels = Shape::panels;
  using Result = float[Bc / 2];

  const BwdParameters& p;
  const BwdWideRings<Shape>& rings;
  unsigned works = 0, steps = 0;

  __device__ __forceinline__ BwdWideGroup(const BwdParameters& p_,
                                          const BwdWideRings<Shape>& rings_)
      : p(p_), rings(rings_) {}

  static __device__ __forceinline__ void release(Mbarrier barrier) {
    __syncwarp();
    if (lane() == 0) barrier.arrive();
  }
  /// Number of a use of P and dS: for every step one, and one at the end of a key tile, when dV and
  /// dK leave by way of them.
  __device__ __forceinline__ unsigned use() const { return works + steps; }

  /// Address at which a lane stores its row of 8 numbers of the first 16 keys; others are 16 rows
  /// further.
  static __device__ __forceinline__ SharedAddress row_in(SharedAddress tile) {
    // Matrix m of a lane group: keys 8 (m / 2) on, rows 8 (m % 2) on of the warp's 16.
    const int matrix = lane() / 8, key = 8 * (matrix / 2) + lane() % 8;
    return tile + swizzled_chunk(key, 2 * warp() + matrix % 2);
  }
};

}  // namespace attest
