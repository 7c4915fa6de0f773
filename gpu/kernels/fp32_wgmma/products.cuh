#pragma once

#include <cstdint>

#include "gpu/kernels/fp32_wgmma/parts.cuh"
#include "gpu/kernels/fp32_wgmma/shape.cuh"
#include "gpu/primitives/wgmma.cuh"

namespace attest {

/// The two products of a warpgroup, as groups of wgmma that are issued and not waited for.
/// Descriptors: of the first part of a tile.
template <typename Shape>
struct SplitProducts {
  using Parts = typename Shape::Parts;
  using T = typename Parts::T;
  static constexpr int steps = Shape::D / 16, Bc = Shape::Bc;

  /// S = Q K^T; with two chains, `late` of it is apart and to be added.
  static __device__ __forceinline__ void issue_scores(float (&s)[Bc / 2], float (&late)[Bc / 2],
                                                      const MatrixDescriptor& q_tile,
                                                      const MatrixDescriptor& k_tile) {
    fence_products();
#pragma unroll
    for (int i = 0; i < Parts::pairs; ++i) {
      const PartPair pair = Parts::pair(i);
      const MatrixDescriptor q = q_tile + (pair.left * Shape::q_part_bytes >> 4);
      const MatrixDescriptor k = k_tile + (pair.right * Shape::k_part_bytes >> 4);
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        const bool is_late = Shape::two_score_chains && i == Parts::pairs - 1 && step >= steps / 2;
        issue_product<T, Major::k, Major::k>(is_late ? late : s, q + k_major_step(step, Shape::Br),
                                             k + k_major_step(step, Bc),
                                             is_late ? step > steps / 2 : i + step > 0);
      }
    }
    commit_products();
  }

  /// x = P V of the tile's 64 keys `block`, columns `slice` of O; with two chains, the small
  /// products are apart and to be added.
  static __device__ __forceinline__ void issue_values(float (&x)[Shape::o_columns / 2],
                                                      float (&small)[Shape::o_columns / 2],
                                                      unsigned (&w)[Parts::count][Bc / 16][4],
                                                      const MatrixDescriptor& v_tile, int block,
                                                      int slice) {
#pragma unroll
    for (int part = 0; part < Parts::count; ++part)
#pragma unroll
      for (int k = 0; k < 4; ++k) hold(w[part][4 * block + k]);
    fence_products();
#pragma unroll
    for (int i = 0; i < Parts::pairs; ++i) {
      const PartPair pair = Parts::pair(i);
      const MatrixDescriptor v =
          v_tile + ((pair.right * Shape::k_part_bytes +
                     slice * (Shape::o_columns / panel_columns) * Shape::k_panel_bytes) >>
                    4);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const bool is_small = Shape::two_value_chains && i < Parts::pairs - 1;
        issue_product<T, Major::mn>(is_small ? small : x, w[pair.left][4 * block + k],
                                    v + mn_major_step(4 * block + k),
                                    is_small || !Shape::two_value_chains ? i + k > 0 : k > 0);
      }
    }
    commit_products();
  }
};

}  // namespace attest
