#pragma once

#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// A warp's 16 rows of S = Q K^T once more, by the warp itself: s as wgmma leaves it, bit for bit,
/// since mma.sync adds in the same steps of 16. q: the warp's rows of a tile with `q_rows` rows, k:
/// a tile of Bc rows, both as wgmma_descriptor.hpp has them; Bc is a multiple of 16.
template <typename T, int D, int Bc, int q_rows>
__device__ __forceinline__ void form_scores_again(float (&s)[Bc / 2], SharedAddress q,
                                                  SharedAddress k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (float& x : s) x = 0.0F;
#pragma unroll 1
  for (int step = 0; step < D / 16; ++step) {
    const int panel = step / 4, chunk = step % 4 * 2;
    unsigned a[4];
    load_matrices(
        a, q + (panel * q_rows * panel_row_bytes + swizzled_chunk(lane % 16, chunk + lane / 16)));
#pragma unroll
    for (int j = 0; j < Bc / 8; ++j) {
      unsigned b[2];  // keys 8 j to 8 j + 7, both halves of the step
      load_matrices(b, k + (panel * Bc * panel_row_bytes +
                            swizzled_chunk(8 * j + lane % 8, chunk + lane / 8 % 2)));
      float d[4] = {s[4 * j], s[4 * j + 1], s[4 * j + 2], s[4 * j + 3]};
      mma_16x8x16<T>(d, a, b);
#pragma unroll
      for (int i = 0; i < 4; ++i) s[4 * j + i] = d[i];
    }
  }
}

}  // namespace attest
